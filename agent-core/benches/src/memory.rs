//! What the kernel says of a process's memory and processor time.

use std::time::Duration;

use anyhow::{Context as _, Result};

/// A line of /proc/PID/status, in megabytes: `VmRSS` now, `VmHWM` at its highest.
pub fn megabytes(pid: u32, key: &str) -> Result<f64> {
    let file = format!("/proc/{pid}/status");
    let text = std::fs::read_to_string(&file).with_context(|| format!("read {file}"))?;
    let kilobytes: u32 = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':')?.split_whitespace().next()?.parse().ok())
        .with_context(|| format!("{file} has no {key}"))?;
    Ok(f64::from(kilobytes) * 1024.0 / 1e6)
}

/// A file's size in megabytes.
pub fn file(path: &std::path::Path) -> Result<f64> {
    let bytes = std::fs::metadata(path).with_context(|| format!("look at {}", path.display()))?.len();
    #[allow(clippy::cast_precision_loss, reason = "a program is smaller than 2^52 bytes")]
    let megabytes = bytes as f64 / 1e6;
    Ok(megabytes)
}

/// The processor time that a process has used so far, all its threads together.
pub fn processor(pid: u32) -> Result<Duration> {
    let file = format!("/proc/{pid}/task");
    let mut nanos = 0;
    for task in std::fs::read_dir(&file).with_context(|| format!("read {file}"))? {
        // To the nanosecond, while `stat` counts ticks.
        let stat = task?.path().join("schedstat");
        let text = std::fs::read_to_string(&stat).with_context(|| format!("read {}", stat.display()))?;
        let used: u64 =
            text.split_whitespace().next().and_then(|word| word.parse().ok()).context("schedstat")?;
        nanos += used;
    }
    Ok(Duration::from_nanos(nanos))
}
