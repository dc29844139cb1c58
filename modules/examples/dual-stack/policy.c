/* Every pod must have an address of both families: in a cluster with two, a pod with one is found by half of its peers. */
#include <string.h>

#include "pod_policy.h"

/* A text that stays. The bindings free only what the policy was given. */
static pod_policy_string_t text(const char *constant) {
  pod_policy_string_t string;
  pod_policy_string_dup(&string, constant);
  return string;
}

bool exports_aether_policy_pods_init(exports_aether_policy_pods_context_t *context, pod_policy_string_t *settings,
                                     exports_aether_policy_pods_fault_t *err) {
  (void) context;
  if (settings->len == 2 && memcmp(settings->ptr, "{}", 2) == 0) return true;
  err->tag = AETHER_BASE_TYPES_FAULT_CONFIG;
  err->val.config = text("this policy has no settings");
  return false;
}

bool exports_aether_policy_pods_evaluate(exports_aether_policy_pods_pod_t *pod,
                                         exports_aether_policy_pods_verdict_t *verdict,
                                         exports_aether_policy_pods_fault_t *err) {
  (void) err;
  bool v4 = false, v6 = false;
  for (size_t i = 0; i < pod->addresses.len; i++) {
    pod_policy_string_t address = pod->addresses.ptr[i];
    if (memchr(address.ptr, ':', address.len)) v6 = true;
    else v4 = true;
  }
  if (v4 && v6) {
    verdict->tag = EXPORTS_AETHER_POLICY_PODS_VERDICT_ADMIT;
    return true;
  }
  verdict->tag = EXPORTS_AETHER_POLICY_PODS_VERDICT_DENY;
  verdict->val.deny.code = text("one-family");
  verdict->val.deny.message = text(v4 ? "the pod has no IPv6 address" : "the pod has no IPv4 address");
  /* The pool that ran out may have one again. */
  verdict->val.deny.retry = true;
  return true;
}
