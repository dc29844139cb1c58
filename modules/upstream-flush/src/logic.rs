//! When observed upstreams are written out, and which are forgotten: pure.

use aether_module::behaviour::upstreams::view::{Summary, Upstream};
use serde::Deserialize;

/// How often it is looked at while a change waits.
pub const LOOK_MS: u32 = 1000;
/// How often it is looked at while none does: so much longer, at most, does a change wait that no event tells of.
pub const IDLE_LOOK_MS: u32 = 5000;
/// How often it is looked for upstreams to forget.
pub const FORGET_EVERY_MS: u64 = 600_000;

/// What the module is told.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// How long a change may wait, in milliseconds.
    pub flush_after_ms: u64,
    /// How many changes may wait.
    pub dirty_max: u32,
    /// After how many hours without use an upstream is forgotten; 0 for never.
    pub forget_after_hours: u64,
}

/// Why it is looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// As always.
    Usual,
    /// The agent stops.
    Stopping,
}

/// Whether to write them out now.
pub fn flush(settings: &Settings, summary: &Summary, now: u64, why: Why) -> bool {
    let waited = summary.oldest_dirty.map_or(0, |since| now.saturating_sub(since));
    summary.dirty > 0
        && (why == Why::Stopping || waited >= settings.flush_after_ms || summary.dirty >= settings.dirty_max)
}

/// After how many milliseconds it is looked again.
pub fn look_again(summary: &Summary) -> u32 {
    if summary.dirty > 0 { LOOK_MS } else { IDLE_LOOK_MS }
}

/// Those of a page that nobody used for too long.
pub fn stale(settings: &Settings, page: &[Upstream], now: u64) -> Vec<String> {
    if settings.forget_after_hours == 0 {
        return Vec::new();
    }
    let old = settings.forget_after_hours.saturating_mul(3_600_000);
    let unused = page.iter().filter(|upstream| now.saturating_sub(upstream.last_seen) >= old);
    unused.map(|upstream| upstream.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings = Settings { flush_after_ms: 5000, dirty_max: 256, forget_after_hours: 1 };

    #[test]
    fn m01_a_change_waits_for_others_but_not_for_long_and_not_at_the_end() {
        let summary = |dirty, oldest_dirty| Summary { total: 1000, dirty, oldest_dirty, last_flush: None };
        for (dirty, since, why, flushed) in [
            (0, None, Why::Usual, false),
            (0, None, Why::Stopping, false),
            (1, Some(5001), Why::Usual, false),
            (1, Some(5000), Why::Usual, true),
            (1, Some(9999), Why::Stopping, true),
            (256, Some(9999), Why::Usual, true),
            // A clock that was set back waits no longer than it must.
            (1, Some(20_000), Why::Usual, false),
        ] {
            assert_eq!(
                flush(&SETTINGS, &summary(dirty, since), 10_000, why),
                flushed,
                "{dirty} {since:?} {why:?}"
            );
        }
    }

    #[test]
    fn m01_what_waits_is_looked_at_more_often_than_what_does_not() {
        let summary = |dirty| Summary { total: 1000, dirty, oldest_dirty: None, last_flush: None };
        assert_eq!((look_again(&summary(0)), look_again(&summary(1))), (IDLE_LOOK_MS, LOOK_MS));
    }

    #[test]
    fn m01_only_what_nobody_used_for_long_is_forgotten() {
        let upstream = |name: &str, last_seen| Upstream {
            name: name.into(),
            port: 80,
            first_seen: 0,
            last_seen,
            hits: 1,
        };
        let page = [upstream("old", 0), upstream("new", 1)];
        assert_eq!(stale(&SETTINGS, &page, 3_600_000), ["old"]);
        assert!(stale(&Settings { forget_after_hours: 0, ..SETTINGS }, &page, u64::MAX).is_empty());
    }
}
