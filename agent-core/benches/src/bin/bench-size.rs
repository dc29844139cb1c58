//! P10: what the agent weighs: its binary without a compiler, its memory and its idle processor time with 110 pods and four
//! modules, and beside a writer that never rests; and what the compiler of modules needs at its peak for each example policy.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aether_benches::local::Local;
use aether_benches::{Figure, Progress, Report, exec, memory};
use aether_domain::paths;
use aether_harness::{tools, wait};
use anyhow::{Context as _, Result, ensure};
use clap::Parser;

/// The goals: binary and memory in megabytes, idle time in percent of a core.
const BINARY: f64 = 20.0;
const MEMORY: f64 = 30.0;
const IDLE: f64 = 0.2;
/// What every program has in it that can compile a module.
const COMPILER: &[u8] = b"cranelift_codegen";
/// The example policies, as `cargo xtask build` names their files.
const EXAMPLES: [&str; 4] =
    ["require-annotation.wasm", "refuse-host-ports.wasm", "namespace-list.wasm", "dual-stack.wasm"];
/// The fourth module beside the three built-in ones.
const POLICY: &str = "world = \"pod-policy\"\ngrant = { change = [\"label\"] }\ninstances = \"warm\"\n\
    settings = { namespaces = [\"bench\"], others = \"deny\" }\n";
/// How many bytes the pipe to the compiler holds at most. Less than every artefact; the kernel rounds up to a page.
const PIPE: usize = 4096;
/// Within which the policy is compiled and loaded.
const LOADED: Duration = Duration::from_secs(60);

/// Weighs the agent.
#[derive(Debug, Parser)]
struct Args {
    /// How many pods it knows.
    #[arg(long, default_value_t = 110)]
    pods: usize,
    /// For how many seconds it is watched while it idles.
    #[arg(long, default_value_t = 60)]
    idle: u32,
    /// For how many seconds it is watched while another program never rests in the CNI directory.
    #[arg(long, default_value_t = 20)]
    restless: u32,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut report = Report::default();
    binary(&mut report)?;
    compiler(&mut report)?;
    let agent = Local::start(policy)?;
    let four = "a fourth module";
    wait::until_blocking(four, LOADED, || {
        let told = agent.ask(&["modules", "-o", "json"])?;
        ensure!(told.matches("\"enabled\"").count() >= 4, "{told}\n{}", agent.log());
        Ok(())
    })?;
    report.add(resident(&agent, "no pod", None)?);
    let plugin = tools::program_under_test(paths::PLUGIN)?;
    let mut progress = Progress::new("pods", args.pods);
    for pod in 0..args.pods {
        exec::timed(&plugin, "ADD", &agent, &format!("pod{pod}"))?;
        progress.at(pod);
    }
    report.add(resident(&agent, &format!("{} pods", args.pods), Some(MEMORY))?);
    wakes(&mut report)?;
    idle(&agent, args.idle, &mut report)?;
    restless(&agent, args.restless, &mut report)?;
    report.add(resident(&agent, &format!("{} pods, after all of it", args.pods), Some(MEMORY))?);
    report.write(&tools::workspace().join("target/bench"), "size")
}

fn binary(report: &mut Report) -> Result<()> {
    let agent = tools::program_under_test("aether-agent")?;
    report.add(Figure::new("P10", "binary of the agent", memory::file(&agent)?, "MB", Some(BINARY)));
    let compilers = |program: &Path| -> Result<u32> {
        let bytes = std::fs::read(program).with_context(|| format!("read {}", program.display()))?;
        Ok(u32::from(bytes.windows(COMPILER.len()).any(|window| window == COMPILER)))
    };
    let modc = tools::program_under_test(paths::MODULE_COMPILER)?;
    ensure!(
        compilers(&modc)? == 1,
        "{} shows no compiler: this bench looks for the wrong name",
        modc.display()
    );
    let inside = f64::from(compilers(&agent)?);
    report.add(Figure::new("P10", "compilers of modules in the agent", inside, "", Some(0.0)));
    report.add(Figure::new("P10", "binary of aether-modc, beside it", memory::file(&modc)?, "MB", None));
    Ok(())
}

/// The compiler has its peak behind it once it writes, and cannot end before its artefact is taken: its pipe is made small.
fn compiler(report: &mut Report) -> Result<()> {
    let modc = tools::program_under_test(paths::MODULE_COMPILER)?;
    for example in EXAMPLES {
        let component = tools::program_under_test(example)?;
        let component = std::fs::read(&component).with_context(|| format!("read {}", component.display()))?;
        let mut child = Command::new(&modc)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("run {}", modc.display()))?;
        child.stdin.take().context("its input")?.write_all(&component)?;
        let mut out = child.stdout.take().context("its output")?;
        let pipe = rustix::pipe::fcntl_setpipe_size(&out, PIPE).context("make the pipe small")?;
        out.read_exact(&mut [0]).with_context(|| format!("aether-modc compiles no {example}"))?;
        let peak = memory::megabytes(child.id(), "VmHWM")?;
        let mut rest = Vec::new();
        out.read_to_end(&mut rest)?;
        ensure!(child.wait()?.success(), "aether-modc ended badly on {example}");
        ensure!(rest.len() > pipe, "{example} became {} bytes, which a pipe of {pipe} holds", rest.len());
        let what = format!("peak RSS of aether-modc on {example}, {} KB", component.len() / 1024);
        report.add(Figure::new("P10", what, peak, "MB", None));
    }
    Ok(())
}

/// An operator's policy in the agent's directory.
fn policy(directory: &Path) -> Result<()> {
    let modules = directory.join("modules");
    std::fs::create_dir(&modules)?;
    let component = tools::program_under_test("namespace-list.wasm")?;
    let component = std::fs::read(&component).with_context(|| format!("read {}", component.display()))?;
    for (name, bytes) in [("bench.wasm", component.as_slice()), ("bench.toml", POLICY.as_bytes())] {
        let path = modules.join(name);
        std::fs::write(&path, bytes)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644))?;
    }
    Ok(())
}

fn resident(agent: &Local, with: &str, goal: Option<f64>) -> Result<Figure> {
    let rss = memory::megabytes(agent.pid(), "VmRSS")?;
    Ok(Figure::new("P10", format!("RSS of the agent with four modules and {with}"), rss, "MB", goal))
}

/// What waking up costs here and now, whoever does it: on a virtual machine that its host has put to rest it is many times
/// what it is on one that works, and an agent that idles does little else.
fn wakes(report: &mut Report) -> Result<()> {
    const TIMES: u32 = 100;
    let work = || -> Result<Duration> {
        let used = || Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime));
        let before = used()?;
        for _ in 0..TIMES {
            // pause: what is measured is the return from it
            std::thread::sleep(Duration::from_millis(100));
            std::fs::metadata("/")?;
        }
        Ok(used()?.saturating_sub(before))
    };
    let used = std::thread::scope(|scope| scope.spawn(work).join())
        .map_err(|_| anyhow::anyhow!("the thread that only wakes panicked"))??;
    let each = used.as_secs_f64() * 1e6 / f64::from(TIMES);
    let what = "a wake-up of any thread on this machine, in the same run";
    report.add(Figure::new("P10", what, each, "us", None));
    Ok(())
}

fn idle(agent: &Local, seconds: u32, report: &mut Report) -> Result<()> {
    let percent = used(agent, "seconds of idling", seconds)?;
    report.add(Figure::new("P10", "processor time while idle", percent, "% of a core", Some(IDLE)));
    Ok(())
}

/// A program that rewrites a file of its own in the CNI directory again and again: C01 has each change looked at.
fn restless(agent: &Local, seconds: u32, report: &mut Report) -> Result<()> {
    let (file, done) = (agent.path("net.d").join("99-restless.conf"), AtomicBool::new(false));
    let write = || -> Result<u32> {
        let mut writes = 0;
        while !done.load(Ordering::Relaxed) {
            std::fs::write(&file, writes.to_string())?;
            writes += 1;
            // pause: the writer's own
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(writes)
    };
    let (percent, writes) = std::thread::scope(|scope| -> Result<_> {
        let rival = scope.spawn(write);
        let percent = used(agent, "seconds beside a writer", seconds);
        done.store(true, Ordering::Relaxed);
        let writes = rival.join().map_err(|_| anyhow::anyhow!("the writer panicked"))??;
        Ok((percent?, writes))
    })?;
    std::fs::remove_file(&file)?;
    let what = format!("processor time beside {} writes a second into net.d", writes / seconds.max(1));
    report.add(Figure::new("P10", what, percent, "% of a core", None));
    Ok(())
}

/// The agent's processor time in these seconds, in percent of a core.
fn used(agent: &Local, what: &'static str, seconds: u32) -> Result<f64> {
    let mut progress = Progress::new(what, usize::try_from(seconds)?);
    let before = memory::processor(agent.pid())?;
    for second in 0..seconds {
        // pause: what is measured is what the agent does meanwhile
        std::thread::sleep(Duration::from_secs(1));
        progress.at(usize::try_from(second)?);
    }
    let used = memory::processor(agent.pid())?.saturating_sub(before);
    Ok(used.as_secs_f64() / f64::from(seconds.max(1)) * 100.0)
}
