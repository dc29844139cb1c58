//! Two agents' ends of `handover.sock`, in one process (T13).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test's helpers fail as its body does"
)]

use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aether_domain::takeover::message::{Greeting, Hello, Listener, Role, ToOwner, ToStandby, VERSION};
use aether_domain::takeover::{Attach, Batch, Event, Identity, Peer, Socket};
use aether_durable::socket::{Bound, bind};
use aether_handover::{Batches, Connection, Standbys, accept, call};
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Far above what anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

struct Owner {
    directory: tempfile::TempDir,
    connected: mpsc::Receiver<(Peer, Connection)>,
    events: mpsc::Receiver<Event>,
    stop: CancellationToken,
    _tasks: JoinSet<()>,
}

impl Owner {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let Bound { listener, .. } = bind(&directory.path().join("handover.sock")).unwrap();
        let listener = Arc::new(UnixListener::from_std(listener).unwrap());
        let (to, connected) = mpsc::channel(4);
        let (tell, events) = mpsc::channel(16);
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::new(Standbys::default()), to, tell, stop.clone()));
        Self { directory, connected, events, stop, _tasks: tasks }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("handover.sock")
    }
}

struct Standby {
    connection: Connection,
    events: mpsc::Receiver<Event>,
    batches: Arc<Batches>,
    _tasks: JoinSet<()>,
}

impl Standby {
    fn call(owner: &Owner) -> Self {
        let (connection, made) = call(&owner.path(), hello()).unwrap();
        let (tell, events) = mpsc::channel(16);
        let batches = Arc::<Batches>::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(made.follow(Attach(7), Arc::clone(&batches), tell));
        Self { connection, events, batches, _tasks: tasks }
    }
}

fn hello() -> Hello {
    Hello { version: VERSION, oldest: VERSION, name: "b".into(), started: 5, role: Role::Standby }
}

fn greeting(sockets: &[Socket]) -> ToStandby {
    let listener = |socket: &Socket| Listener { socket: *socket, identity: Identity { dev: 1, ino: 2 } };
    let listeners = sockets.iter().map(listener).collect();
    ToStandby::Greeting(Greeting { version: VERSION, name: "a".into(), listeners })
}

async fn next<T>(events: &mut mpsc::Receiver<T>) -> T {
    tokio::time::timeout(PATIENCE, events.recv()).await.expect("nothing came").expect("the task has ended")
}

#[tokio::test]
async fn t13_a_standby_says_hello_is_greeted_with_listeners_and_both_hear_the_others_end() {
    let mut owner = Owner::start();
    let mut standby = Standby::call(&owner);
    let (peer, to_standby) = next(&mut owner.connected).await;
    assert_eq!(next(&mut owner.events).await, Event::FromStandby { peer, message: ToOwner::Hello(hello()) });
    let (far, near) = UnixStream::pair().unwrap();
    let other = UnixStream::pair().unwrap().0;
    let given = [near.as_fd(), other.as_fd()];
    to_standby.say(&greeting(&[Socket::Cni, Socket::Handover]), &given).unwrap();
    to_standby.say(&ToStandby::Chosen, &[]).unwrap();
    drop((near, other));
    let Event::FromOwner { attach: Attach(7), message, batch: Some(batch) } = next(&mut standby.events).await
    else {
        panic!("no greeting with listeners")
    };
    assert_eq!(message, greeting(&[Socket::Cni, Socket::Handover]));
    let taken = UnixStream::from(standby.batches.take(batch, Socket::Cni).unwrap().0);
    std::io::Write::write_all(&mut &taken, b"!").unwrap();
    let mut byte = [0];
    std::io::Read::read_exact(&mut &far, &mut byte).unwrap();
    assert_eq!(&byte, b"!");
    let chosen = Event::FromOwner { attach: Attach(7), message: ToStandby::Chosen, batch: None };
    assert_eq!(next(&mut standby.events).await, chosen);
    standby.connection.say(&ToOwner::Ready, &[]).unwrap();
    assert_eq!(next(&mut owner.events).await, Event::FromStandby { peer, message: ToOwner::Ready });
    assert!(!to_standby.is_closed());
    standby.connection.close();
    assert!(to_standby.is_closed(), "the kernel knows at once (T07)");
    assert_eq!(next(&mut owner.events).await, Event::StandbyGone { peer });
    assert_eq!(next(&mut standby.events).await, Event::OwnerGone { attach: Attach(7) });
}

#[tokio::test]
async fn t13_an_owner_that_ends_is_heard_and_one_that_only_accepts_no_more_is_not() {
    let mut owner = Owner::start();
    let mut standby = Standby::call(&owner);
    let (peer, to_standby) = next(&mut owner.connected).await;
    next(&mut owner.events).await;
    owner.stop.cancel();
    standby.connection.say(&ToOwner::Complete, &[]).unwrap();
    assert_eq!(next(&mut owner.events).await, Event::FromStandby { peer, message: ToOwner::Complete });
    to_standby.close();
    assert_eq!(next(&mut standby.events).await, Event::OwnerGone { attach: Attach(7) });
}

#[tokio::test]
async fn t13_a_greeting_whose_listeners_did_not_come_and_bytes_that_are_no_message_end_the_connection() {
    let mut owner = Owner::start();
    for junk in [true, false] {
        let mut standby = Standby::call(&owner);
        let (_, to_standby) = next(&mut owner.connected).await;
        next(&mut owner.events).await;
        if junk {
            to_standby.say(&"no object", &[]).unwrap();
        } else {
            to_standby.say(&greeting(&[Socket::Cni]), &[]).unwrap();
        }
        assert_eq!(next(&mut standby.events).await, Event::OwnerGone { attach: Attach(7) });
        standby.connection.close();
        assert!(matches!(next(&mut owner.events).await, Event::StandbyGone { .. }));
    }
}

/// What a later version may say to this one.
#[derive(serde::Serialize)]
struct Later {
    r#type: &'static str,
}

#[tokio::test]
async fn t13_the_descriptors_of_a_message_of_the_future_are_not_taken_for_a_greetings() {
    let mut owner = Owner::start();
    let mut standby = Standby::call(&owner);
    let (_, to_standby) = next(&mut owner.connected).await;
    let (far, near) = UnixStream::pair().unwrap();
    let (other_far, other) = UnixStream::pair().unwrap();
    to_standby.say(&Later { r#type: "certificates" }, &[other.as_fd(), other.as_fd()]).unwrap();
    to_standby.say(&greeting(&[Socket::Cni]), &[near.as_fd()]).unwrap();
    let Event::FromOwner { batch: Some(batch), .. } = next(&mut standby.events).await else {
        panic!("no greeting with listeners")
    };
    let taken = UnixStream::from(standby.batches.take(batch, Socket::Cni).unwrap().0);
    std::io::Write::write_all(&mut &taken, b"!").unwrap();
    let mut byte = [0];
    std::io::Read::read_exact(&mut &far, &mut byte).unwrap();
    assert_eq!(&byte, b"!");
    // Nobody holds the others any more.
    drop(other);
    assert_eq!(std::io::Read::read(&mut &other_far, &mut byte).unwrap(), 0);
}

#[tokio::test]
async fn t13_whoever_says_nothing_is_not_waited_for_and_others_are_heard_meanwhile() {
    let mut owner = Owner::start();
    let silent = UnixStream::connect(owner.path()).unwrap();
    let (Peer(first), _) = next(&mut owner.connected).await;
    let _standby = Standby::call(&owner);
    let (peer, _) = next(&mut owner.connected).await;
    assert_ne!(peer, Peer(first));
    assert_eq!(next(&mut owner.events).await, Event::FromStandby { peer, message: ToOwner::Hello(hello()) });
    assert_eq!(next(&mut owner.events).await, Event::StandbyGone { peer: Peer(first) });
    drop(silent);
}

#[tokio::test]
async fn t13_whoever_does_not_read_is_not_waited_for() {
    let mut owner = Owner::start();
    let _silent = UnixStream::connect(owner.path()).unwrap();
    let (_, connection) = next(&mut owner.connected).await;
    let error = (0..10_000).find_map(|_| connection.say(&ToStandby::Chosen, &[]).err()).unwrap();
    assert!(error.to_string().contains("cannot send"), "{error}");
}

#[test]
fn t13_batches_are_numbered_from_one() {
    assert_eq!(Batches::default().keep(&[], Vec::new()), Batch(1));
}
