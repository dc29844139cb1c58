use super::*;
use proptest::prelude::*;

fn keys(containers: std::ops::Range<usize>) -> BTreeSet<Key> {
    containers.map(|n| Key::new(format!("c{n}").parse().unwrap(), "eth0".parse().unwrap())).collect()
}

fn held(gone: usize, of: usize, agreed: u32) -> Sweep {
    Sweep::Held { gone, of, agreed }
}

#[test]
fn s06_a_netns_that_cannot_be_seen_is_unknown_and_never_gone() {
    let netns = |path: &str, inode| Netns { path: path.to_owned(), inode };
    let unknown = Seen::Unknown { why: "the directory is not there".to_owned() };
    for (netns, seen, verdict) in [
        (netns("/run/netns/a", 7), Seen::Namespace { inode: 7 }, Verdict::Alive),
        (netns("/run/netns/a", 7), Seen::Namespace { inode: 8 }, Verdict::Gone),
        (netns("/run/netns/a", 0), Seen::Namespace { inode: 8 }, Verdict::Alive),
        (netns("/run/netns/a", 7), Seen::Namespace { inode: 0 }, Verdict::Alive),
        (netns("/run/netns/a", 7), Seen::Missing, Verdict::Gone),
        (netns("/run/netns/a", 7), unknown, Verdict::Unknown),
        (netns("", 0), Seen::Missing, Verdict::Unknown),
    ] {
        assert_eq!(judge(&netns, &seen), verdict, "{netns:?} {seen:?}");
    }
}

#[test]
fn s06_a_sweep_of_few_or_of_a_small_share_acts_at_once() {
    for (total, gone) in [(1, 1), (2, 2), (10, 3), (100, 30), (5, 0), (0, 0)] {
        assert_eq!(
            Breaker::default().decide(total, keys(0..gone)),
            Sweep::Remove(keys(0..gone)),
            "{gone} of {total}"
        );
    }
}

#[test]
fn s06_a_large_sweep_waits_until_two_further_ones_agree() {
    let mut breaker = Breaker::default();
    assert_eq!(breaker.decide(9, keys(0..3)), held(3, 9, 0));
    assert_eq!(breaker.decide(9, keys(0..3)), held(3, 9, 1));
    assert_eq!(breaker.decide(9, keys(0..4)), Sweep::Remove(keys(0..3)), "only what all three found");
    // What came later is judged anew.
    assert_eq!(breaker.decide(6, keys(3..4)), Sweep::Remove(keys(3..4)));
}

#[test]
fn s06_a_sweep_that_disagrees_starts_the_count_again() {
    let mut breaker = Breaker::default();
    assert_eq!(breaker.decide(10, keys(0..10)), held(10, 10, 0));
    assert_eq!(breaker.decide(10, keys(0..10)), held(10, 10, 1));
    // The mounts came back.
    assert_eq!(breaker.decide(10, keys(0..1)), Sweep::Remove(keys(0..1)));
    assert_eq!(breaker.decide(10, keys(0..10)), held(10, 10, 0));
    // Others than those that were held: nothing is agreed upon.
    assert_eq!(breaker.decide(20, keys(10..20)), held(10, 20, 0));
}

proptest! {
    /// Whatever sweeps find: a large share goes only if each of its records was found gone three times in a row.
    #[test]
    fn s06_nothing_goes_in_a_large_sweep_that_was_not_found_gone_three_times(
        sweeps in proptest::collection::vec(proptest::collection::btree_set(0..12usize, 0..12), 1..10)
    ) {
        let mut breaker = Breaker::default();
        let all: Vec<Key> = keys(0..12).into_iter().collect();
        let found: Vec<BTreeSet<Key>> =
            sweeps.iter().map(|sweep| sweep.iter().map(|index| all[*index].clone()).collect()).collect();
        for (index, gone) in found.iter().enumerate() {
            if let Sweep::Remove(going) = breaker.decide(12, gone.clone()) {
                prop_assert!(going.is_subset(gone));
                if going.len() >= SWEEP_BREAKER_MIN && going.len() * 100 > 12 * SWEEP_BREAKER_PERCENT {
                    prop_assert!(index >= 2);
                    prop_assert!(going.is_subset(&found[index - 1]) && going.is_subset(&found[index - 2]));
                }
            }
        }
    }
}
