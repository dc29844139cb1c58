//! The flows of T01-T13, one by one.

use super::*;
use crate::limits::{GREETING_WAIT, LOCK_CHECK, LOCK_RETRY, READY_WAIT, TAKEOVER_RETRY};
use crate::pods::Presence;

#[test]
fn t02_a_free_lock_at_the_start_leads_straight_to_serving() {
    let mut rig = Rig::new(Proxies::None);
    rig.hear(Event::Started);
    assert_eq!(rig.did(), [Effect::Build, Effect::TryLock]);
    rig.hear(Event::LockTaken).see(Path::Dead, Path::Dead);
    assert_eq!(rig.did(), [Effect::ApplyTombstones]);
    rig.hear(Event::TombstonesApplied { applied: 3 });
    assert_eq!(rig.did(), [Effect::Reconcile]);
    rig.hear(Event::Reconciled { changes: Changes { added: 2, ..Changes::default() } });
    rig.see(Path::Dead, Path::Dead);
    assert_eq!(rig.did(), [Effect::Bind { socket: Socket::Cni }, Effect::Bind { socket: Socket::Handover }]);
    assert_ne!(rig.machine.readiness(rig.now), Readiness::Ready);
    rig.serving(Socket::Cni);
    assert_eq!(rig.did(), [Effect::EnableModules]);
    rig.serving(Socket::Handover).pass_gates();
    assert_eq!(rig.machine.phase().name(), "owner");
    assert_eq!(rig.machine.readiness(rig.now), Readiness::Ready);
    assert_eq!(rig.machine.report().tombstones, 3);
}

#[test]
fn t03_t13_a_standby_tries_until_it_is_greeted_and_waits_in_flock_when_chosen() {
    let mut rig = Rig::new(Proxies::None);
    let first = rig.standby();
    rig.hear(Event::AttachFailed { attach: first }).wait(LOCK_RETRY);
    let tries = rig.did();
    assert!(matches!(tries[..], [Effect::TryLock, Effect::Attach { .. }]), "{tries:?}");
    // A call that nobody greets is made again.
    rig.wait(GREETING_WAIT);
    let second = rig.calling();
    rig.greet(second, 1);
    rig.wait(LOCK_RETRY * 10);
    assert_eq!(rig.did(), []);
    assert_eq!(rig.machine.readiness(rig.now), Readiness::Missing(vec!["modules", "records"]));
    rig.pass_gates();
    assert_eq!(rig.did(), [Effect::ToOwner { attach: second, message: ToOwner::Complete }]);
    assert_eq!(rig.machine.readiness(rig.now), Readiness::Ready);
    rig.say(second, ToStandby::Chosen);
    assert_eq!(rig.did(), [Effect::WaitLock]);
    rig.say(second, ToStandby::NotChosen);
    assert_eq!(rig.did(), [Effect::StopWaiting]);
    rig.hear(Event::OwnerGone { attach: second });
    assert!(matches!(rig.did()[..], [Effect::TryLock, Effect::Attach { .. }]));
}

/// Found by `cargo xtask fuzz`: it rested on the word of an owner that it had left.
#[test]
fn t03_t13_a_standby_whose_owner_turns_to_an_unknown_version_tries_for_the_lock_again() {
    let mut rig = Rig::new(Proxies::None);
    let attach = rig.standby();
    rig.greet(attach, 1).did();
    let message = ToStandby::Greeting(Greeting { version: 9, ..greeting() });
    rig.hear(Event::FromOwner { attach, message, batch: Some(Batch(2)) });
    let did = rig.did();
    assert!(did.contains(&Effect::Detach { attach }), "{did:?}");
    assert!(did.contains(&Effect::Close { batch: Batch(2) }), "{did:?}");
    assert!(did.contains(&Effect::TryLock), "{did:?}");
}

#[test]
fn t05_t13_an_heir_serves_on_the_duplicates_that_the_paths_still_name() {
    let mut rig = Rig::new(Proxies::Served);
    let attach = rig.standby();
    rig.greet(attach, 5).pass_gates().say(attach, ToStandby::Leaving);
    assert!(rig.did().contains(&Effect::ToOwner { attach, message: ToOwner::Ready }));
    rig.say(attach, ToStandby::Yours).hear(Event::OwnerGone { attach }).hear(Event::LockTaken);
    rig.see(Path::Ours, Path::Ours).hear(Event::TombstonesApplied { applied: 0 });
    rig.hear(Event::Reconciled { changes: Changes { added: 1, ..Changes::default() } });
    // Meanwhile a stranger removed one of them.
    rig.see(Path::Ours, Path::Dead);
    let batch = Batch(5);
    assert_eq!(
        rig.did(),
        [Effect::Listen { socket: Socket::Cni, batch }, Effect::Bind { socket: Socket::Handover }]
    );
    rig.serving(Socket::Cni);
    assert_eq!(rig.did(), [Effect::EnableModules, Effect::AwaitCertificates]);
    rig.serving(Socket::Handover).wait(crate::limits::CERTIFICATE_WAIT);
    assert!(rig.did().contains(&Effect::Bind { socket: Socket::Xds }));
    rig.serving(Socket::Xds).hear(Event::ModulesEnabled);
    assert!(rig.did().contains(&Effect::Close { batch }));
    let report = rig.machine.report();
    assert!(report.yours);
    let steps: Vec<Step> = report.steps.iter().map(|(step, _)| *step).collect();
    let order = "lock paths tombstones reconcile serve certificates proxies modules";
    assert_eq!(steps.into_iter().map(Step::name).collect::<Vec<_>>().join(" "), order);
    assert_eq!(report.placed[0], (Socket::Cni, Placed::HandedOver));
}

/// The third socket is placed last, by what was seen last.
#[test]
fn t13_a_path_that_changed_while_the_cni_socket_could_not_be_served_is_bound_anew() {
    let mut rig = Rig::new(Proxies::Served);
    let attach = rig.standby();
    let mut named = greeting();
    named.listeners.push(Listener { socket: Socket::Xds, identity: Identity { dev: 1, ino: 9 } });
    rig.hear(Event::FromOwner { attach, message: ToStandby::Greeting(named), batch: Some(Batch(5)) });
    rig.pass_gates().hear(Event::OwnerGone { attach }).hear(Event::LockTaken);
    let seen = |xds| {
        let mut sight = sight(Path::Ours, Path::Ours);
        sight.paths.insert(Socket::Xds, xds);
        sight
    };
    let look = rig.looking();
    rig.hear(Event::Seen { look, sight: seen(Path::Ours) }).hear(Event::TombstonesApplied { applied: 0 });
    rig.hear(Event::Reconciled { changes: Changes::default() });
    let look = rig.looking();
    rig.hear(Event::Seen { look, sight: seen(Path::Ours) }).hear(Event::OpenFailed { socket: Socket::Cni });
    rig.wait(TAKEOVER_RETRY);
    let look = rig.looking();
    rig.hear(Event::Seen { look, sight: seen(Path::Dead) }).serving(Socket::Cni).serving(Socket::Handover);
    rig.wait(crate::limits::CERTIFICATE_WAIT);
    assert!(rig.did().contains(&Effect::Bind { socket: Socket::Xds }));
}

#[test]
fn t06_a_predecessor_without_hand_over_is_waited_for_and_named() {
    let mut rig = Rig::new(Proxies::None);
    rig.pass_gates().hear(Event::Started).hear(Event::LockTaken);
    let mut named = Vec::new();
    // 31 s of a listener that does not end.
    for _ in 0..=310 {
        rig.see(LIVE, Path::Dead);
        named.extend(rig.said().into_iter().filter(|note| matches!(note, Note::ForeignListener { .. })));
        // It is a standby in all but the lock: without Ready the roll would not end the predecessor.
        assert_eq!(rig.machine.readiness(rig.now), Readiness::Ready);
        rig.wait(crate::limits::FOREIGN_LISTENER_POLL);
    }
    assert_eq!(named.len(), 2, "{named:?}");
    assert!(named[0].to_string().contains("process 4"));
    rig.see(Path::Dead, Path::Dead);
    assert_eq!(rig.did(), [Effect::ApplyTombstones]);
}

#[test]
fn t13_duplicates_of_an_owner_that_is_gone_are_kept_for_a_takeover_and_no_longer() {
    let mut rig = Rig::new(Proxies::None);
    let attach = rig.standby();
    rig.greet(attach, 5).wait(crate::limits::DUPLICATES_KEPT * 2).hear(Event::OwnerGone { attach });
    let close = Effect::Close { batch: Batch(5) };
    rig.wait(crate::limits::DUPLICATES_KEPT / 2);
    assert!(!rig.did().contains(&close));
    rig.wait(crate::limits::DUPLICATES_KEPT / 2);
    assert!(rig.did().contains(&close));
}

#[test]
fn t08_a_listener_that_only_standbys_hold_is_renamed_over() {
    let mut rig = Rig::new(Proxies::None);
    rig.hear(Event::Started).hear(Event::LockTaken).see(LIVE, LIVE);
    rig.calling();
    rig.wait(GREETING_WAIT);
    assert!(rig.did().contains(&Effect::ApplyTombstones));
    rig.hear(Event::TombstonesApplied { applied: 0 }).hear(Event::Reconciled { changes: Changes::default() });
    rig.see(LIVE, LIVE);
    assert_eq!(rig.did(), [Effect::Bind { socket: Socket::Cni }, Effect::Bind { socket: Socket::Handover }]);
}

#[test]
fn t01_an_heir_of_a_removed_lock_file_waits_until_the_owner_has_drained() {
    let mut rig = Rig::new(Proxies::None);
    rig.hear(Event::Started).hear(Event::LockTaken).see(LIVE, LIVE);
    let attach = rig.calling();
    rig.greet(attach, 1);
    rig.wait(LOCK_CHECK);
    rig.see(LIVE, LIVE);
    assert_eq!(rig.did(), []);
    rig.hear(Event::OwnerGone { attach }).see(Path::Ours, Path::Ours);
    assert_eq!(rig.did(), [Effect::ApplyTombstones]);
}

#[test]
fn t01_the_chosen_one_that_gets_the_lock_while_its_owner_lives_waits_for_its_end() {
    let mut rig = Rig::new(Proxies::None);
    let attach = rig.standby();
    rig.greet(attach, 5).pass_gates().say(attach, ToStandby::Chosen).did();
    rig.hear(Event::LockTaken);
    assert_eq!(rig.did(), [Effect::ToOwner { attach, message: ToOwner::Locked }]);
    rig.hear(Event::OwnerGone { attach }).see(Path::Ours, Path::Ours);
    assert_eq!(rig.did(), [Effect::ApplyTombstones]);
    let mut owner = Rig::owner(Proxies::None);
    owner.peer(1, 1).from(1, ToOwner::Locked);
    let look = owner.looking();
    owner.hear(Event::Seen { look, sight: Sight { lock: Lock::Replaced, ..sight(Path::Ours, Path::Ours) } });
    owner.draining();
}

#[test]
fn t05_a_lock_that_is_quicker_than_yours_is_reported_as_what_it_is() {
    let mut rig = Rig::new(Proxies::None);
    let attach = rig.standby();
    rig.greet(attach, 5).pass_gates().say(attach, ToStandby::Chosen).wait(Duration::from_secs(9));
    rig.hear(Event::LockTaken).say(attach, ToStandby::Yours);
    rig.hear(Event::OwnerGone { attach }).take_over();
    let report = rig.machine.report();
    assert!(report.yours);
    assert_eq!(
        report.took(Step::Lock),
        Some(Duration::ZERO),
        "nine seconds of standing by are no part of it"
    );
}

#[test]
fn t07_whoever_has_the_lock_and_hears_yours_waits_for_no_end_of_the_owner() {
    let mut rig = Rig::new(Proxies::None);
    let attach = rig.standby();
    rig.greet(attach, 5).pass_gates().say(attach, ToStandby::Chosen).hear(Event::LockTaken);
    rig.did();
    rig.say(attach, ToStandby::Yours);
    assert!(matches!(rig.did()[..], [Effect::Detach { .. }, Effect::Look { .. }]));
}

#[test]
fn t01_an_owner_whose_lock_file_was_removed_drains_and_ends_and_takes_nothing_back() {
    let mut rig = Rig::owner(Proxies::None);
    rig.peer(1, 1).from(1, ToOwner::Complete).hear(Event::Terminate).from(1, ToOwner::Ready);
    let round = rig.draining();
    rig.wait(LOCK_CHECK);
    let look = rig.looking();
    rig.hear(Event::Seen { look, sight: Sight { lock: Lock::Replaced, ..sight(Path::Ours, Path::Ours) } });
    rig.hear(Event::StandbyGone { peer: Peer(1) });
    rig.hear(Event::Drained { round }).hear(Event::Flushed { round });
    assert_eq!(rig.did(), [Effect::Flush { round }, Effect::Exit { reason: Reason::LockReplaced }]);
}

#[test]
fn t07_an_idle_owner_hands_over_in_four_steps() {
    let mut rig = Rig::owner(Proxies::None);
    rig.peer(1, 1).from(1, ToOwner::Complete);
    assert!(rig.did().contains(&to(1, ToStandby::Chosen)));
    rig.hear(Event::Terminate);
    assert_eq!(rig.did(), [to(1, ToStandby::Leaving)]);
    rig.from(1, ToOwner::Ready);
    let round = rig.draining();
    rig.hear(Event::Drained { round });
    assert_eq!(rig.did(), [Effect::Flush { round }]);
    rig.hear(Event::Flushed { round });
    assert_eq!(rig.did(), [Effect::LookAt { peer: Peer(1), round }]);
    rig.hear(Event::PeerSeen { peer: Peer(1), round, presence: Presence::Here });
    assert_eq!(rig.did(), [to(1, ToStandby::Yours), Effect::Exit { reason: Reason::Terminated }]);
}

#[test]
fn t07_a_standby_that_does_not_answer_is_passed_over_and_may_still_answer_late() {
    let mut rig = Rig::owner(Proxies::None);
    rig.peer(1, 1).from(1, ToOwner::Complete).peer(2, 2).from(2, ToOwner::Complete);
    assert!(rig.did().ends_with(&[to(1, ToStandby::NotChosen), to(2, ToStandby::Chosen)]));
    rig.hear(Event::Terminate);
    assert_eq!(rig.did(), [to(2, ToStandby::Leaving)]);
    rig.wait(READY_WAIT);
    assert_eq!(rig.did(), [to(1, ToStandby::Leaving)]);
    rig.wait(READY_WAIT);
    assert_eq!(rig.did(), []);
    assert_eq!(rig.machine.phase().name(), "leaving");
    rig.from(2, ToOwner::Ready);
    rig.draining();
}

#[test]
fn t07_t12_a_drain_is_taken_back_when_the_chosen_standby_dies_and_then_waits() {
    let mut rig = Rig::owner(Proxies::None);
    rig.peer(1, 1).from(1, ToOwner::Complete).hear(Event::Terminate).from(1, ToOwner::Ready);
    let round = rig.draining();
    rig.hear(Event::Drained { round }).hear(Event::Flushed { round });
    rig.did();
    rig.hear(Event::PeerSeen { peer: Peer(1), round, presence: Presence::Gone });
    assert_eq!(rig.did(), [Effect::TakeBack { round }]);
    // What the drain that was taken back still says counts for nothing.
    rig.hear(Event::Drained { round }).hear(Event::Flushed { round });
    assert_eq!(rig.did(), []);
    rig.peer(2, 2).from(2, ToOwner::Complete).from(2, ToOwner::Ready);
    rig.draining();
}

#[test]
fn t12_sigterm_is_put_off_for_an_incomplete_standby_at_most_half_the_grace() {
    let mut rig = Rig::owner(Proxies::None);
    rig.peer(1, 1).hear(Event::Terminate);
    let put_off = |effect: &Effect| matches!(effect, Effect::Note(Note::PutOff { .. }));
    assert!(rig.effects.iter().any(put_off));
    let mut other = Rig::owner(Proxies::None);
    other.peer(1, 1).hear(Event::Terminate).from(1, ToOwner::Complete);
    assert!(other.did().contains(&to(1, ToStandby::Leaving)));
    rig.wait(Duration::from_millis(14_999)).did();
    assert_eq!(rig.machine.phase().name(), "leaving");
    rig.wait(Duration::from_millis(1));
    rig.draining();
}

#[test]
fn t12_without_a_standby_sigterm_is_obeyed_at_once() {
    let mut rig = Rig::owner(Proxies::None);
    rig.hear(Event::Terminate);
    let round = rig.draining();
    rig.hear(Event::Drained { round }).hear(Event::Flushed { round });
    assert_eq!(rig.did(), [Effect::Flush { round }, Effect::Exit { reason: Reason::Terminated }]);
}

#[test]
fn t08_an_owner_binds_a_dead_path_anew_and_hands_the_new_socket_over_but_leaves_a_strangers() {
    let mut rig = Rig::owner(Proxies::None);
    rig.peer(1, 1);
    rig.did();
    rig.wait(LOCK_CHECK).see(LIVE, Path::Ours);
    assert_eq!(rig.did(), []);
    rig.wait(LOCK_CHECK).see(Path::Dead, Path::Ours);
    assert_eq!(rig.did(), [Effect::Bind { socket: Socket::Cni }]);
    rig.serving(Socket::Cni);
    assert!(matches!(rig.did()[..], [Effect::Greet { peer: Peer(1), .. }]));
}

#[test]
fn t13_a_standby_that_speaks_no_common_version_is_turned_away_and_a_flood_of_them_too() {
    let mut rig = Rig::owner(Proxies::None);
    let hello = Hello { version: 9, oldest: 9, name: "future".to_owned(), started: 1, role: Role::Standby };
    rig.from(77, ToOwner::Hello(hello));
    assert_eq!(rig.did(), [Effect::Drop { peer: Peer(77) }]);
    for peer in 0..20 {
        rig.peer(peer, peer);
    }
    let did = rig.did();
    let greeted = did.iter().filter(|effect| matches!(effect, Effect::Greet { .. })).count();
    assert_eq!(greeted, crate::limits::STANDBYS_MAX);
    assert_eq!(did.len(), 20);
}

#[test]
fn t09_sigterm_ends_a_standby_at_once() {
    let mut rig = Rig::new(Proxies::None);
    rig.standby();
    rig.hear(Event::Terminate);
    assert_eq!(rig.did(), [Effect::Exit { reason: Reason::Terminated }]);
    assert_eq!(rig.machine.wake_at(), None);
}

/// A standby that has got the lock from an owner that died, and has looked at the paths.
fn heir() -> Rig {
    let mut rig = Rig::new(Proxies::None);
    let attach = rig.standby();
    rig.greet(attach, 1).pass_gates();
    rig.hear(Event::OwnerGone { attach }).hear(Event::LockTaken).see(Path::Dead, Path::Dead);
    rig
}

const NOT_SERVING: [&str; 1] = ["cni-socket"];

#[test]
fn t04_t05_an_heir_whose_steps_fail_is_not_ready_until_it_serves_and_reports_one_attempt() {
    let mut rig = heir();
    assert_eq!(rig.machine.readiness(rig.now), Readiness::Ready, "a few milliseconds are no flap");
    rig.said();
    for _ in 0..3 {
        rig.hear(Event::TombstonesApplied { applied: 5 }).hear(Event::StepFailed { step: Step::Reconcile });
        assert_eq!(rig.machine.readiness(rig.now), Readiness::Missing(NOT_SERVING.to_vec()));
        rig.wait(TAKEOVER_RETRY);
        assert_eq!(
            rig.machine.readiness(rig.now),
            Readiness::Missing(NOT_SERVING.to_vec()),
            "while it tries"
        );
        let look = rig.machine.phase().clone();
        let Phase::Taking(Taking { stage: Stage::Looking { look }, .. }) = look else { panic!("{look:?}") };
        rig.hear(Event::Seen { look, sight: sight(Path::Dead, Path::Dead) });
    }
    let done = rig.said().into_iter().filter(|note| matches!(note, Note::Done { .. })).count();
    assert_eq!(done, 1, "the tombstones of the first attempt; the others are told no more");
    rig.hear(Event::TombstonesApplied { applied: 2 });
    rig.hear(Event::Reconciled { changes: Changes::default() }).see(Path::Dead, Path::Dead);
    rig.serving(Socket::Cni).serving(Socket::Handover).hear(Event::ModulesEnabled);
    assert_eq!(rig.machine.readiness(rig.now), Readiness::Ready);
    let steps: Vec<_> = rig.machine.report().steps.iter().map(|(step, _)| *step).collect();
    assert_eq!(
        steps,
        [Step::Lock, Step::Paths, Step::Tombstones, Step::Reconcile, Step::Serve, Step::Modules]
    );
    assert_eq!(rig.machine.report().tombstones, 2);
}

#[test]
fn t04_t08_an_heir_that_cannot_bind_and_an_owner_whose_path_is_a_strangers_are_not_ready() {
    let mut rig = heir();
    rig.hear(Event::TombstonesApplied { applied: 0 });
    rig.hear(Event::Reconciled { changes: Changes::default() }).see(Path::Dead, Path::Dead);
    rig.hear(Event::OpenFailed { socket: Socket::Cni });
    assert_eq!(rig.machine.readiness(rig.now), Readiness::Missing(NOT_SERVING.to_vec()));
    rig.wait(TAKEOVER_RETRY).see(Path::Dead, Path::Dead).serving(Socket::Cni).serving(Socket::Handover);
    assert_eq!(rig.machine.readiness(rig.now), Readiness::Ready);
    rig.wait(LOCK_CHECK).see(LIVE, Path::Ours);
    assert_eq!(rig.machine.readiness(rig.now), Readiness::Missing(NOT_SERVING.to_vec()));
    rig.wait(LOCK_CHECK).see(Path::Dead, Path::Ours);
    assert_eq!(rig.machine.readiness(rig.now), Readiness::Missing(NOT_SERVING.to_vec()), "it is being bound");
    rig.serving(Socket::Cni);
    assert_eq!(rig.machine.readiness(rig.now), Readiness::Ready);
}
