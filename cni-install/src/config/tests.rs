use super::*;
use clap::{CommandFactory as _, Parser as _};

fn build(args: &[&str]) -> Result<Config, ConfigError> {
    let args =
        Args::try_parse_from(std::iter::once("aether-cni-install").chain(args.iter().copied())).unwrap();
    super::build(args, Some(Path::new("/image/aether-cni-install")), |_| false)
}

fn install(args: &[&str]) -> Install {
    match build(args).unwrap().task {
        Task::Install(order) => order,
        Task::Uninstall(order) => panic!("{order:?}"),
    }
}

#[test]
fn the_command_line_is_consistent() {
    Args::command().debug_assert();
}

#[test]
fn i01_an_install_without_an_id_is_called_manual() {
    assert_eq!(install(&[]).id.as_str(), DEFAULT_INSTALL_ID);
}

#[test]
fn i01_the_binary_lies_beside_the_program_unless_told() {
    assert_eq!(install(&[]).plugin_source, Path::new("/image/aether-cni"));
    assert_eq!(install(&["--plugin-source", "/x"]).plugin_source, Path::new("/x"));
    let args = Args::try_parse_from(["aether-cni-install"]).unwrap();
    assert!(matches!(super::build(args, None, |_| false), Err(ConfigError::NoPluginSource)));
}

#[test]
fn i09_defaults_stand_in_the_entry() {
    let entry = install(&[]).entry.value;
    let expected = serde_json::json!({
        "name": "aether", "type": "aether-cni", "agentSocket": "/run/aether/cni.sock", "stateDir": "/var/lib/aether",
        "addDeadlineSeconds": 5, "ignoredNamespaces": [], "managed": "opt-out",
        "capabilities": {"io.kubernetes.cri.pod-annotations": true, "portMappings": true},
    });
    assert_eq!(entry, expected);
}

#[test]
fn i09_the_order_of_namespaces_makes_no_new_entry() {
    let one = install(&["--ignore-namespace", "b", "--ignore-namespace", "a"]).entry;
    let other = install(&["--ignore-namespace", "a,b,a,"]).entry;
    assert_eq!(one, other);
}

#[test]
fn i11_check_and_dry_run_never_act() {
    assert_eq!(build(&["--check", "--no-wait"]).unwrap().mode, Mode::Check);
    assert_eq!(build(&["--dry-run", "--no-wait"]).unwrap().mode, Mode::DryRun);
    assert_eq!(build(&["--no-wait"]).unwrap().mode, Mode::NoWait);
    assert_eq!(build(&[]).unwrap().mode, Mode::Wait);
}

#[test]
fn i13_flags_override_the_profile() {
    let places = build(&["--profile", "k3s", "--cni-bin-dir", "/b"]).unwrap().places;
    assert_eq!(places.conf_dir, Path::new("/var/lib/rancher/k3s/agent/etc/cni/net.d"));
    assert_eq!(places.bin_dir, Path::new("/b"));
}
