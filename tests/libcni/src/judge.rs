//! The Go programs, as judges.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use aether_conflist::libcni::Version;
use anyhow::{Context as _, bail, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

use crate::case::{Case, Item, Verdict};

/// One version of libcni.
#[derive(Debug, Clone)]
pub struct Judge {
    version: Version,
    program: PathBuf,
}

#[derive(Serialize)]
struct Question {
    files: Vec<File>,
}

#[derive(Serialize, Default)]
struct File {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dir: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    error: Option<String>,
    name: String,
    cni_version: String,
    plugins: Vec<Plugin>,
}

#[derive(Deserialize)]
struct Plugin {
    #[serde(rename = "type")]
    plugin_type: String,
    bytes: String,
}

impl Judge {
    /// The judge of a version, from `AETHER_TOOLS_DIR` or `target/tools`. Its absence is an error that says what to do.
    pub fn find(version: Version) -> anyhow::Result<Self> {
        let name = match version {
            Version::V1_1_2 => "libcni-1.1.2",
            Version::V1_3_1 => "libcni-1.3.1",
        };
        let program = tools_dir().join(name).join(name);
        if !program.is_file() {
            bail!("{} is not there; build it with: cargo xtask tools", program.display());
        }
        Ok(Self { version, program })
    }

    /// Both judges.
    pub fn both() -> anyhow::Result<[Self; 2]> {
        Ok([Self::find(Version::V1_1_2)?, Self::find(Version::V1_3_1)?])
    }

    /// Which version it is.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The versions of the modules that the program is linked with.
    pub fn linked(&self) -> anyhow::Result<String> {
        let output = Command::new(&self.program)
            .arg("version")
            .output()
            .with_context(|| format!("run {}", self.program.display()))?;
        Ok(String::from_utf8(output.stdout)?)
    }

    /// What it makes of a directory on the disk.
    pub fn look(&self, dir: &Path) -> anyhow::Result<Verdict> {
        let output = Command::new(&self.program)
            .arg(dir)
            .output()
            .with_context(|| format!("run {}", self.program.display()))?;
        ensure!(output.status.success(), "{} failed: {output:?}", self.program.display());
        verdict(std::str::from_utf8(&output.stdout)?)
    }

    /// What it makes of each case, in order.
    pub fn ask(&self, cases: &[Case]) -> anyhow::Result<Vec<Verdict>> {
        let mut child = Command::new(&self.program)
            .arg("-")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {}", self.program.display()))?;
        let mut stdin = child.stdin.take().context("the judge's standard input")?;
        let stdout = child.stdout.take().context("the judge's standard output")?;
        let verdicts = std::thread::scope(|scope| {
            // Questions go in from a thread of their own: each side would wait for the other otherwise.
            let asking = scope.spawn(move || -> anyhow::Result<()> {
                for case in cases {
                    let mut line = serde_json::to_vec(&question(case))?;
                    line.push(b'\n');
                    stdin.write_all(&line).context("ask the judge")?;
                }
                Ok(())
            });
            let verdicts: anyhow::Result<Vec<Verdict>> =
                BufReader::new(stdout).lines().map(|line| verdict(&line?)).collect();
            match asking.join() {
                Ok(asked) => asked.and(verdicts),
                Err(_) => bail!("the thread that asks panicked"),
            }
        });
        let status = child.wait()?;
        ensure!(status.success(), "{} ended with {status}", self.program.display());
        let verdicts = verdicts?;
        ensure!(verdicts.len() == cases.len(), "{} answers to {} questions", verdicts.len(), cases.len());
        Ok(verdicts)
    }
}

/// A judge that runs and answers one question after the other.
#[derive(Debug)]
pub struct Conversation {
    version: Version,
    child: Child,
    /// `None` once the end was said.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Judge {
    /// Starts it for a conversation: a verdict then costs no process.
    pub fn converse(&self) -> anyhow::Result<Conversation> {
        let mut command = Command::new(&self.program);
        // Each question becomes a directory, which no disk needs to see.
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            command.env("TMPDIR", memory);
        }
        let mut child = command
            .arg("-")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {}", self.program.display()))?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().context("the judge's standard output")?);
        Ok(Conversation { version: self.version, child, stdin, stdout })
    }
}

impl Conversation {
    /// Which version it is.
    pub fn version(&self) -> Version {
        self.version
    }

    /// What it makes of a case.
    pub fn ask(&mut self, case: &Case) -> anyhow::Result<Verdict> {
        let mut line = serde_json::to_vec(&question(case))?;
        line.push(b'\n');
        self.stdin.as_mut().context("the conversation is over")?.write_all(&line).context("ask the judge")?;
        let mut answer = String::new();
        let read = self.stdout.read_line(&mut answer).context("hear the judge")?;
        ensure!(read > 0, "the judge ended before it had answered");
        verdict(&answer)
    }
}

impl Drop for Conversation {
    /// With its standard input closed the judge removes its directory and ends.
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

fn tools_dir() -> PathBuf {
    if let Some(dir) = std::env::var_os("AETHER_TOOLS_DIR") {
        return PathBuf::from(dir);
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).join("target/tools")
}

fn question(case: &Case) -> Question {
    let files = case.items.iter().map(|(name, item)| {
        let file = File { name: name.clone(), ..File::default() };
        match item {
            Item::File(bytes) => File { body: Some(STANDARD.encode(bytes)), ..file },
            Item::Link(target) => File { link: Some(target.clone()), ..file },
            Item::Dir => File { dir: Some(true), ..file },
        }
    });
    Question { files: files.collect() }
}

fn verdict(line: &str) -> anyhow::Result<Verdict> {
    let answer: Answer =
        serde_json::from_str(line).with_context(|| format!("the judge's answer {line:?}"))?;
    if let Some(error) = answer.error {
        return Ok(Verdict { file: answer.file, outcome: Err(error) });
    }
    let plugins = answer.plugins.into_iter().map(|plugin| {
        let bytes = STANDARD.decode(&plugin.bytes).context("the plugin's bytes")?;
        Ok((plugin.plugin_type, bytes))
    });
    let loaded = crate::case::Loaded {
        name: answer.name,
        cni_version: answer.cni_version,
        plugins: plugins.collect::<anyhow::Result<_>>()?,
    };
    Ok(Verdict { file: answer.file, outcome: Ok(loaded) })
}
