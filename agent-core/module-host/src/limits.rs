//! What a module may use (M04): defaults, what `module.toml` may ask for, and how quantities are written.

use std::time::Duration;

use serde::Deserialize;

/// How often the engine looks at a running call's deadline.
pub const TICK: Duration = Duration::from_millis(1);
/// How much longer than its processor time a call may take on the wall: a busy node lets it wait.
pub const WALL_FACTOR: u32 = 20;
/// The time of all policies together at one ADD, on the wall: short beside an ADD's deadline.
pub const ADD_BUDGET: Duration = Duration::from_millis(500);
/// The largest state that a module may save, in bytes.
pub const SAVED_MAX: usize = 64 * 1024;
/// The largest `module.toml`, in bytes.
pub const MANIFEST_MAX: usize = 64 * 1024;
/// How many operator modules are taken from the directory.
pub const MODULES_MAX: usize = 64;
/// How many metric series one module may have.
pub const SERIES_MAX: usize = 64;
/// The longest name, key, reason or message that is taken from a module, in bytes.
pub const TEXT_MAX: usize = 1024;
/// How many events a module may raise in a minute.
pub const EVENTS_PER_MINUTE: u32 = 10;
/// How many events wait for a module that is not called; `changed` events of one package count once.
pub const EVENTS_QUEUED: usize = 64;

/// The limits of one module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How much processor time one call may take.
    pub call: Duration,
    /// How much processor time instantiation and `init` may take, each.
    pub init: Duration,
    /// Linear memory, in bytes.
    pub memory: usize,
    /// Elements of all tables together.
    pub table: usize,
    /// What one result or argument may make the host allocate, in bytes.
    pub result: usize,
    /// The component's file, in bytes.
    pub component: usize,
    /// Actions that one call may stage.
    pub actions: usize,
    /// Log lines that are passed on in a minute (M13).
    pub log_lines_per_minute: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call: Duration::from_millis(10),
            init: Duration::from_millis(100),
            memory: 16 << 20,
            table: 10_000,
            result: 1 << 20,
            component: 4 << 20,
            actions: 16,
            log_lines_per_minute: 600,
        }
    }
}

/// The most that `module.toml` may ask for.
pub const CEILING: Limits = Limits {
    call: Duration::from_secs(1),
    init: Duration::from_secs(10),
    memory: 256 << 20,
    table: 1_000_000,
    result: 16 << 20,
    component: 64 << 20,
    actions: 256,
    log_lines_per_minute: 60_000,
};

/// The table `[limits]` of a `module.toml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct Asked {
    call_ms: Option<u64>,
    init_ms: Option<u64>,
    memory: Option<Bytes>,
    table: Option<usize>,
    result: Option<Bytes>,
    component: Option<Bytes>,
    actions: Option<usize>,
    log_lines_per_minute: Option<u32>,
}

/// A limit that `module.toml` may not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("limits.{key} = {asked} is not possible: at least 1, at most {most}")]
pub struct LimitError {
    /// The key.
    pub key: &'static str,
    /// What was asked for.
    pub asked: u64,
    /// What may be asked for.
    pub most: u64,
}

impl Asked {
    /// The limits, where what is not asked for is the default.
    pub(crate) fn limits(&self) -> Result<Limits, LimitError> {
        let default = Limits::default();
        let time = |key, asked: Option<u64>, default: Duration, most: Duration| {
            let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
            match asked {
                None => Ok(default),
                Some(asked) => within(key, asked, most).map(Duration::from_millis),
            }
        };
        let size = |key, asked: Option<usize>, default: usize, most: usize| match asked {
            None => Ok(default),
            Some(asked) => within(key, as_u64(asked), as_u64(most)).map(|_| asked),
        };
        Ok(Limits {
            call: time("call-ms", self.call_ms, default.call, CEILING.call)?,
            init: time("init-ms", self.init_ms, default.init, CEILING.init)?,
            memory: size("memory", self.memory.map(|b| b.0), default.memory, CEILING.memory)?,
            table: size("table", self.table, default.table, CEILING.table)?,
            result: size("result", self.result.map(|b| b.0), default.result, CEILING.result)?,
            component: size("component", self.component.map(|b| b.0), default.component, CEILING.component)?,
            actions: size("actions", self.actions, default.actions, CEILING.actions)?,
            log_lines_per_minute: match self.log_lines_per_minute {
                None => default.log_lines_per_minute,
                Some(asked) => {
                    within("log-lines-per-minute", asked.into(), CEILING.log_lines_per_minute.into())?;
                    asked
                }
            },
        })
    }
}

fn within(key: &'static str, asked: u64, most: u64) -> Result<u64, LimitError> {
    if (1..=most).contains(&asked) { Ok(asked) } else { Err(LimitError { key, asked, most }) }
}

fn as_u64(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

/// A number of bytes: an integer, or text such as `"16Mi"` or `"512Ki"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
struct Bytes(usize);

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number of bytes, as an integer or as text like \"16Mi\"")]
enum Written {
    Number(usize),
    Text(String),
}

impl TryFrom<Written> for Bytes {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let text = match written {
            Written::Number(number) => return Ok(Self(number)),
            Written::Text(text) => text,
        };
        let (digits, shift) = match text.strip_suffix("Mi") {
            Some(digits) => (digits, 20),
            None => text.strip_suffix("Ki").map_or((text.as_str(), 0), |digits| (digits, 10)),
        };
        let number = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(1 << shift));
        number
            .map(Self)
            .ok_or_else(|| format!("{text:?} is no number of bytes: write 1048576, \"512Ki\" or \"16Mi\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Limits, String> {
        toml::from_str::<Asked>(text)
            .map_err(|error| error.to_string())
            .and_then(|asked| asked.limits().map_err(|error| error.to_string()))
    }

    #[test]
    fn m04_what_is_not_asked_for_is_the_default() {
        assert_eq!(read("").unwrap(), Limits::default());
        let limits = read("memory = \"32Mi\"\nresult = 4096\ncall-ms = 5").unwrap();
        assert_eq!((limits.memory, limits.result, limits.call.as_millis()), (32 << 20, 4096, 5));
        assert_eq!(limits.init, Limits::default().init);
    }

    #[test]
    fn m04_limits_have_a_ceiling_and_the_error_says_which() {
        for (text, words) in [
            (
                "memory = \"1024Mi\"",
                "limits.memory = 1073741824 is not possible: at least 1, at most 268435456",
            ),
            ("call-ms = 0", "limits.call-ms = 0"),
            ("memory = \"16GB\"", "\"16GB\" is no number of bytes"),
            ("memory = true", "a number of bytes"),
            ("cpu = 1", "unknown field `cpu`, expected one of `call-ms`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
