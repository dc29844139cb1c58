//! Records whose network namespace is gone (S06).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use aether_domain::pods::{Change, NetnsLook, Seen};
use aether_pod_store::{Store, StoreError, Swept};

use crate::support::{Ground, add, containers, on_disk, record};

/// A world in which some namespaces are gone; the others are there.
#[derive(Default)]
struct World(Mutex<BTreeMap<String, Seen>>);

impl World {
    fn set(&self, container: &str, seen: Seen) {
        self.0.lock().unwrap().insert(format!("/run/netns/{container}"), seen);
    }
}

impl NetnsLook for World {
    fn look(&self, path: &str) -> Seen {
        self.0.lock().unwrap().get(path).cloned().unwrap_or(Seen::Namespace { inode: 1 })
    }
}

async fn with_records(ground: &Ground, count: usize) -> Store {
    let store = ground.owner().await;
    for n in 0..count {
        add(&store, record(&format!("c{n}"), 10)).await.unwrap();
    }
    ground.heard.take();
    store
}

#[tokio::test]
async fn s06_a_record_whose_netns_is_gone_is_removed_and_an_unseen_one_stays() {
    let ground = Ground::new();
    let store = with_records(&ground, 4).await;
    let world = Arc::new(World::default());
    world.set("c0", Seen::Missing);
    world.set("c1", Seen::Unknown { why: "the mount cannot be seen".to_owned() });
    assert_eq!(store.sweep(world).await.unwrap(), Swept::Removed(1));
    assert_eq!(containers(&on_disk(&ground.state_dir).await), ["c1", "c2", "c3"]);
    assert_eq!(containers(&store.records()), ["c1", "c2", "c3"]);
    assert!(matches!(ground.heard.take().as_slice(), [Change::Removed(_)]));
    assert_eq!((store.counts().swept, store.counts().sweeps_done), (1, 1));
}

#[tokio::test]
async fn s06_the_breaker_holds_back_until_two_further_sweeps_agree() {
    let ground = Ground::new();
    let store = with_records(&ground, 9).await;
    let world = Arc::new(World::default());
    for n in 0..3 {
        world.set(&format!("c{n}"), Seen::Missing);
    }
    for _ in 0..2 {
        let look: Arc<World> = Arc::clone(&world);
        assert_eq!(store.sweep(look).await.unwrap(), Swept::Held { gone: 3, of: 9 });
        assert_eq!(on_disk(&ground.state_dir).await.len(), 9);
    }
    assert_eq!(store.sweep(world).await.unwrap(), Swept::Removed(3));
    assert_eq!(on_disk(&ground.state_dir).await.len(), 6);
    assert_eq!(store.counts().sweeps_held, 2);
}

#[tokio::test]
async fn s06_a_sweep_spares_an_add_that_came_while_it_looked() {
    /// Adds the pod anew in the middle of the look.
    struct Meanwhile(Store, tokio::runtime::Handle);
    impl NetnsLook for Meanwhile {
        fn look(&self, _: &str) -> Seen {
            self.1.block_on(add(&self.0, record("c0", 20))).unwrap();
            Seen::Missing
        }
    }
    let ground = Ground::new();
    let store = with_records(&ground, 1).await;
    let look = Meanwhile(store.clone(), tokio::runtime::Handle::current());
    assert_eq!(store.sweep(Arc::new(look)).await.unwrap(), Swept::Removed(0));
    assert_eq!(store.records(), [record("c0", 20)]);
}

#[tokio::test]
async fn t03_a_standby_does_not_sweep() {
    let ground = Ground::new();
    with_records(&ground, 1).await;
    let standby = ground.store();
    standby.reload().await.unwrap();
    let world = Arc::new(World::default());
    world.set("c0", Seen::Missing);
    assert!(matches!(standby.sweep(world).await, Err(StoreError::NotServing(_))));
    assert_eq!(on_disk(&ground.state_dir).await.len(), 1);
}
