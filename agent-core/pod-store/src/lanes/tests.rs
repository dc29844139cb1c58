use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn key(name: &str) -> Key {
    Key::new(name.parse().unwrap(), "eth0".parse().unwrap())
}

fn first(place: Place) -> Turn {
    match place {
        Place::First(turn) => turn,
        Place::Behind(_) => panic!("somebody is there already"),
    }
}

#[tokio::test]
async fn k16_turns_of_one_key_come_in_the_order_of_entering() {
    let lanes = Lanes::default();
    let holder = first(lanes.enter(&key("a")));
    let places: Vec<Place> = (0..20).map(|_| lanes.enter(&key("a"))).collect();
    let served = Arc::new(AtomicUsize::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    // Polled in another order than entered.
    for (index, place) in places.into_iter().enumerate().rev() {
        let served = Arc::clone(&served);
        tasks.spawn(async move {
            let turn = place.turn().await;
            assert_eq!(served.fetch_add(1, Ordering::SeqCst), index);
            drop(turn);
        });
    }
    drop(holder);
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    assert_eq!(served.load(Ordering::SeqCst), 20);
    assert!(lanes.lock().is_empty(), "a key that nobody uses takes no room");
}

#[tokio::test]
async fn k16_keys_do_not_wait_for_each_other() {
    let lanes = Lanes::default();
    let _a = first(lanes.enter(&key("a")));
    let _b = first(lanes.enter(&key("b")));
}

#[tokio::test]
async fn k16_who_gives_up_its_place_holds_nobody_back() {
    let lanes = Lanes::default();
    let holder = first(lanes.enter(&key("a")));
    let gave_up = lanes.enter(&key("a"));
    let waits = lanes.enter(&key("a"));
    let sent_to_nobody = lanes.enter(&key("a"));
    drop(gave_up);
    drop(holder);
    let turn = waits.turn().await;
    // Its turn is sent, and dropped unread.
    drop(turn);
    drop(sent_to_nobody);
    drop(first(lanes.enter(&key("a"))));
    assert!(lanes.lock().is_empty());
}

#[tokio::test]
async fn k16_several_lanes_are_taken_together_without_a_circle() {
    let lanes = Lanes::default();
    let mut tasks = tokio::task::JoinSet::new();
    for round in 0..50 {
        let lanes = lanes.clone();
        tasks.spawn(async move {
            let names = ["a", "b", "c", "d"];
            if round % 3 == 0 {
                let keys = names.iter().map(|name| key(name)).collect();
                let turns = lanes.all(&keys).await;
                tokio::task::yield_now().await;
                assert_eq!(turns.len(), 4);
            } else {
                let turn = lanes.enter(&key(names[round % 4])).turn().await;
                tokio::task::yield_now().await;
                drop(turn);
            }
        });
    }
    let all = async {
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), all).await.expect("they wait in a circle");
    assert!(lanes.lock().is_empty());
}
