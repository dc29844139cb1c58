use proptest::prelude::*;

use super::*;

/// A time of day at which the clock that never goes back says 0.
const EPOCH: u64 = 1_700_000_000_000;

fn at(monotonic: u64) -> Moment {
    Moment { monotonic, wall: EPOCH + monotonic }
}

/// What happens between two repairs, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Round {
    /// From the look to the rename, and to the moment when it is known to be done.
    working: u64,
    hearing: u64,
    /// From the rename to the other writer's write.
    reaction: u64,
    /// From there until it is noticed.
    noticing: u64,
}

/// Plays these rounds; the moments of the repairs' renames.
fn play(rounds: impl IntoIterator<Item = Round>, span: u64) -> (Vec<u64>, Fight) {
    let (mut fight, mut repairs) = (Fight::default(), Vec::new());
    let (mut now, mut written) = (0, 0);
    for round in rounds {
        while let Answer::In(wait) = fight.stripped(at(now), EPOCH + written) {
            now += wait;
        }
        let renamed = now + round.working;
        if renamed >= span {
            break;
        }
        let heard = renamed + round.hearing;
        fight.repaired(at(now), at(heard));
        repairs.push(renamed);
        written = renamed + round.reaction;
        now = heard.max(written + round.noticing);
    }
    (repairs, fight)
}

fn steady(reaction: u64) -> impl Iterator<Item = Round> {
    std::iter::repeat(Round { working: 0, hearing: 0, reaction, noticing: 0 })
}

/// How many repairs of a fight fit into so much time at the very most: the free ones, the first one, and one after each
/// wait.
fn at_most(span: u64) -> usize {
    let mut waited = 0;
    let waits = (0..).map(|doublings: u32| WAIT_MS.saturating_mul(1 << doublings.min(20)).min(WAIT_MAX_MS));
    let fitting = waits.take_while(|wait| {
        waited += wait;
        waited <= span
    });
    FREE as usize + 1 + fitting.count()
}

fn round(
    reaction: std::ops::RangeInclusive<u64>,
    noticing: std::ops::Range<u64>,
) -> impl Strategy<Value = Round> {
    (0..2000u64, 0..2000u64, reaction, noticing).prop_map(|(working, hearing, reaction, noticing)| Round {
        working,
        hearing,
        reaction,
        noticing,
    })
}

#[test]
fn c06_a_writer_that_undoes_each_repair_within_50_ms_is_answered_at_most_twelve_times_in_a_minute() {
    let (repairs, fight) = play(steady(50), 60_000);
    assert!((6..=12).contains(&repairs.len()), "{repairs:?}");
    assert!(fight.is_on());
    let (an_hour, _) = play(steady(50), 3_600_000);
    assert!(an_hour.len() <= 12 + 60, "the wait never exceeds a minute, nor falls below it: {an_hour:?}");
}

#[test]
fn c02_c06_a_strip_now_and_then_is_repaired_at_once_for_ever() {
    let (repairs, fight) = play(steady(UNDONE_WITHIN_MS + 1), 1000 * (UNDONE_WITHIN_MS + 1));
    assert_eq!(repairs.len(), 1000);
    assert!(!fight.is_on());
}

#[test]
fn c06_a_fight_is_over_once_the_entry_stays() {
    let (_, mut fight) = play(steady(50), 60_000);
    fight.repaired(at(100_000), at(100_000));
    let stayed = 100_000 + CALM * WAIT_MAX_MS;
    assert_eq!(fight.stripped(at(stayed), EPOCH + stayed), Answer::Now);
    assert!(!fight.is_on());
}

#[test]
fn c06_a_write_that_is_noticed_late_undoes_the_repair_all_the_same() {
    let mut fight = Fight::default();
    fight.repaired(at(0), at(20));
    fight.stripped(at(60_000), EPOCH + 100);
    assert_eq!(fight.undone(), 1);
}

#[test]
fn c06_where_the_file_does_not_tell_the_time_of_noticing_counts() {
    // Older than the repair: renamed over it. Of the future: somebody set the clock.
    for written in [EPOCH - 86_400_000, EPOCH + 86_400_000] {
        let mut fight = Fight::default();
        fight.repaired(at(0), at(20));
        fight.stripped(at(500), written);
        assert_eq!(fight.undone(), 1, "{written}");
        fight.repaired(at(500), at(520));
        fight.stripped(at(520 + CALM * UNDONE_WITHIN_MS), written);
        assert_eq!(fight.undone(), 0, "{written}");
    }
}

proptest! {
    /// Invariant `bounded-fight`: whatever the delays of repairing, hearing and noticing, a writer that undoes each repair
    /// within a second gets at most `at_most(T)` of them in any time T.
    #[test]
    fn c06_bounded_fight_whatever_the_delays(
        rounds in prop::collection::vec(round(0..=UNDONE_WITHIN_MS, 0..30_000), 1..60),
        span in 1000..600_000u64,
    ) {
        let (repairs, fight) = play(rounds, u64::MAX);
        for (index, first) in repairs.iter().enumerate() {
            let within = repairs[index..].iter().take_while(|at| *at - first <= span).count();
            prop_assert!(within <= at_most(span), "{within} repairs in {span} ms");
        }
        prop_assert_eq!(fight.undone() as usize, repairs.len().saturating_sub(1));
    }

    /// Invariant `no-free-rounds`: a writer that was kept from it now and then, for less than the calm that ends a fight, gets
    /// no more than two repairs more for each such time.
    #[test]
    fn c06_no_free_rounds_for_a_writer_that_was_late_for_once(
        rounds in prop::collection::vec((round(0..=50, 0..3000), prop::option::weighted(0.1, 1001..9000u64)), 1..60),
        span in 1000..600_000u64,
    ) {
        let late = rounds.iter().filter(|(_, late)| late.is_some()).count();
        let rounds = rounds.into_iter().map(|(round, late)| Round { reaction: late.unwrap_or(round.reaction), ..round });
        let (repairs, _) = play(rounds, span);
        prop_assert!(repairs.len() <= at_most(span) + 2 * late, "{} repairs, {late} late", repairs.len());
    }
}
