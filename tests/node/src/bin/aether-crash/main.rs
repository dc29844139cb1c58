//! P16: SIGKILL at random moments of agents, installer and plugin, under load. In the end every pod that lives has its
//! record, every record its pod, and no file is torn.
#![allow(clippy::print_stdout, reason = "it talks to its terminal")]

mod chance;
mod scene;

use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use chance::Chance;
use clap::Parser;
use scene::Scene;

/// After how many rounds the state is audited and the load begins anew.
const CHAPTER: u32 = 50;

/// Kills, and looks what is lost.
#[derive(Debug, Parser)]
struct Args {
    /// How many kills.
    #[arg(long, default_value_t = 1000)]
    rounds: u32,
    /// What the moments are drawn from; a new one without it.
    #[arg(long, value_parser = chance::seed)]
    seed: Option<u64>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let mut chance = Chance::new(args.seed);
    println!("seed {:#x}", chance.seed());
    let begin = Instant::now();
    let mut scene = Scene::begin().await?;
    let mut done = 0;
    while done < args.rounds {
        let until = (done + CHAPTER).min(args.rounds);
        let at = || format!("between kill {done} and kill {until} of seed {:#x}", chance.seed());
        let place = at();
        done = scene.chapter(done, until, &mut chance).await.context(place)?;
    }
    let tally = scene.end().await?;
    println!("{tally}");
    println!("{} kills in {:.0} s", done, begin.elapsed().as_secs_f64());
    if !tally.is_clean() {
        bail!("something was lost, left or torn (seed {:#x})", chance.seed());
    }
    Ok(())
}
