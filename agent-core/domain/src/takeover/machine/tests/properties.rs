//! Events in any order, also orders that no shell would make: the invariants hold and nothing panics.

use proptest::prelude::*;

use super::*;
use crate::pods::Presence;

/// An event that may come at any time, or an answer to something that the machine asked for.
#[derive(Debug, Clone)]
enum Any {
    Event(Event),
    /// Answers the request of that index among those not yet answered, in this way.
    Answer(prop::sample::Index, Answer),
    Wait(u64),
}

#[derive(Debug, Clone, Copy)]
enum Answer {
    Well,
    Badly,
}

fn path() -> impl Strategy<Value = Path> {
    prop_oneof![Just(Path::Ours), Just(Path::Dead), Just(LIVE)]
}

fn message() -> impl Strategy<Value = ToStandby> {
    prop_oneof![
        Just(ToStandby::Greeting(greeting())),
        Just(ToStandby::Chosen),
        Just(ToStandby::NotChosen),
        Just(ToStandby::Leaving),
        Just(ToStandby::Yours)
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let number = 1_u64..12;
    let socket = prop_oneof![Just(Socket::Cni), Just(Socket::Handover), Just(Socket::Xds)];
    let gate = prop_oneof![Just(Gate::RECORDS), Just(Gate::MODULES)];
    let state = prop_oneof![3 => Just(GateState::Open), 1 => Just(GateState::Shut)];
    let lock = prop_oneof![9 => Just(Lock::Ours), 1 => Just(Lock::Replaced)];
    let role = prop_oneof![Just(Role::Standby), Just(Role::Heir)];
    let hello = (0_u32..3, 0_u64..4, role).prop_map(|(version, started, role)| {
        ToOwner::Hello(Hello { version, oldest: version, name: "p".to_owned(), started, role })
    });
    let word = prop_oneof![
        hello,
        Just(ToOwner::Complete),
        Just(ToOwner::Incomplete),
        Just(ToOwner::Ready),
        Just(ToOwner::Locked)
    ];
    let batch = prop::option::of((1_u64..5).prop_map(Batch));
    prop_oneof![
        2 => Just(Event::Started),
        1 => Just(Event::Terminate),
        4 => (gate, state).prop_map(|(gate, state)| Event::Gate { gate, state }),
        1 => Just(Event::LockHeld),
        1 => Just(Event::LockTaken),
        4 => (number.clone(), message(), batch).prop_map(|(attach, message, batch)| Event::FromOwner { attach: Attach(attach), message, batch }),
        1 => number.clone().prop_map(|attach| Event::OwnerGone { attach: Attach(attach) }),
        1 => (number.clone(), lock, path(), path()).prop_map(|(look, lock, cni, handover)| {
            Event::Seen { look: Look(look), sight: Sight { lock, ..sight(cni, handover) } }
        }),
        1 => Just(Event::TombstonesApplied { applied: 1 }),
        1 => Just(Event::Reconciled { changes: Changes { added: 1, ..Changes::default() } }),
        1 => socket.clone().prop_map(|socket| Event::Serving { socket, identity: Identity { dev: 1, ino: 1 } }),
        1 => socket.prop_map(|socket| Event::OpenFailed { socket }),
        4 => (1_u64..4, word).prop_map(|(peer, message)| Event::FromStandby { peer: Peer(peer), message }),
        1 => (1_u64..4).prop_map(|peer| Event::StandbyGone { peer: Peer(peer) }),
        1 => number.clone().prop_map(|round| Event::Drained { round: Round(round) }),
        1 => number.clone().prop_map(|attach| Event::AttachFailed { attach: Attach(attach) }),
        1 => prop_oneof![Just(Step::Tombstones), Just(Step::Reconcile)].prop_map(|step| Event::StepFailed { step }),
        1 => (1_u64..4, number.clone()).prop_map(|(peer, round)| {
            Event::PeerSeen { peer: Peer(peer), round: Round(round), presence: Presence::Here }
        }),
        1 => number.prop_map(|round| Event::Flushed { round: Round(round) }),
    ]
}

fn any_event() -> impl Strategy<Value = Any> {
    let answer = prop_oneof![4 => Just(Answer::Well), 1 => Just(Answer::Badly)];
    prop_oneof![
        2 => event().prop_map(Any::Event),
        6 => (any::<prop::sample::Index>(), answer).prop_map(|(index, answer)| Any::Answer(index, answer)),
        2 => (0_u64..300).prop_map(Any::Wait),
    ]
}

/// The event that answers an effect.
fn answer(effect: &Effect, how: Answer) -> Option<Event> {
    let good = matches!(how, Answer::Well);
    Some(match effect {
        Effect::TryLock if good => Event::LockHeld,
        Effect::TryLock | Effect::WaitLock => Event::LockTaken,
        Effect::Attach { attach, .. } if good => {
            let message = ToStandby::Greeting(greeting());
            Event::FromOwner { attach: *attach, message, batch: Some(Batch(attach.0)) }
        }
        Effect::Attach { attach, .. } => Event::AttachFailed { attach: *attach },
        Effect::ToOwner { attach, .. } if good => {
            Event::FromOwner { attach: *attach, message: ToStandby::Chosen, batch: None }
        }
        Effect::ToOwner { attach, .. } => Event::OwnerGone { attach: *attach },
        Effect::Look { look } => {
            let (cni, handover) = if good { (Path::Dead, Path::Ours) } else { (LIVE, LIVE) };
            Event::Seen { look: *look, sight: sight(cni, handover) }
        }
        Effect::ApplyTombstones if good => Event::TombstonesApplied { applied: 1 },
        Effect::ApplyTombstones => Event::StepFailed { step: Step::Tombstones },
        Effect::Reconcile if good => {
            Event::Reconciled { changes: Changes { added: 2, ..Changes::default() } }
        }
        Effect::Reconcile => Event::StepFailed { step: Step::Reconcile },
        Effect::Listen { socket, .. } | Effect::Bind { socket } if good => {
            Event::Serving { socket: *socket, identity: Identity { dev: 1, ino: 3 } }
        }
        Effect::Listen { socket, .. } | Effect::Bind { socket } => Event::OpenFailed { socket: *socket },
        Effect::AwaitCertificates => Event::CertificatesReady,
        Effect::EnableModules => Event::ModulesEnabled,
        Effect::Greet { peer, .. } if good => Event::FromStandby { peer: *peer, message: ToOwner::Complete },
        Effect::ToStandby { peer, .. } if good => Event::FromStandby { peer: *peer, message: ToOwner::Ready },
        Effect::Greet { peer, .. } | Effect::ToStandby { peer, .. } => Event::StandbyGone { peer: *peer },
        Effect::Drain { round } => Event::Drained { round: *round },
        Effect::Flush { round } => Event::Flushed { round: *round },
        Effect::LookAt { peer, round } => {
            let presence = if good { Presence::Here } else { Presence::Gone };
            Event::PeerSeen { peer: *peer, round: *round, presence }
        }
        Effect::Build
        | Effect::StopWaiting
        | Effect::Detach { .. }
        | Effect::Close { .. }
        | Effect::Drop { .. }
        | Effect::TakeBack { .. }
        | Effect::Exit { .. }
        | Effect::Note(_) => return None,
    })
}

fn proxies() -> impl Strategy<Value = Proxies> {
    prop_oneof![Just(Proxies::None), Just(Proxies::Served)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn t01_t03_t05_t07_t13_whatever_happens_the_invariants_hold(
        proxies in proxies(),
        events in proptest::collection::vec(any_event(), 0..120),
    ) {
        let mut rig = Rig::new(proxies);
        rig.hear(Event::Started);
        let mut open: Vec<Effect> = Vec::new();
        for event in events {
            open.extend(rig.effects.drain(..).filter(|effect| answer(effect, Answer::Well).is_some()));
            match event {
                Any::Event(event) => { rig.hear(event); }
                Any::Answer(index, how) if !open.is_empty() => {
                    let effect = open.remove(index.index(open.len()));
                    if let Some(event) = answer(&effect, how) { rig.hear(event); }
                }
                Any::Answer(..) => {}
                Any::Wait(millis) => { rig.wait(Duration::from_millis(millis)); }
            }
        }
    }

    /// Time alone never makes a machine busy: what it is woken for, it does or puts off.
    #[test]
    fn t13_a_wake_up_is_never_asked_for_twice_at_the_same_moment(
        events in proptest::collection::vec(any_event(), 0..60),
    ) {
        let mut rig = Rig::new(Proxies::Served);
        rig.hear(Event::Started);
        for event in events {
            match event {
                Any::Event(event) => { rig.hear(event); }
                Any::Answer(..) => {}
                Any::Wait(millis) => { rig.wait(Duration::from_millis(millis)); }
            }
            if let Some(wake) = rig.machine.wake_at() {
                rig.now = rig.now.max(wake);
                rig.hear(Event::Tick);
                prop_assert!(rig.machine.wake_at().is_none_or(|again| again > rig.now), "{:?}", rig.machine.phase());
            }
        }
    }
}
