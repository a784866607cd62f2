//! `paraph-crash [KILLS] [OPTIONS]`: kills processes that run graphs, and prints what that did. `just crash` starts it.
//!
//! `paraph-crash prove …` is in `proving.rs`. `paraph-crash child ORDER`, `… errand`, `… busy`, `… linger`, `… take` and
//! `… pace …` are the processes that it starts. Exit code 1 says that
//! something was found, with the seeds that find it again.

use std::path::PathBuf;
use std::process::ExitCode;

use crash::{
    Fault, Launch, Place, Plan, Series, Shape, Stand, be_busy, failpoints, linger, obey, pace,
    peer_kills, random_kills, run_errand, take,
};

const USAGE: &str = "\
usage: paraph-crash [KILLS] [--store sqlite|postgres|URL] [--graph steps|branched] [--durability sync|async|exit]
                    [--seed S] [--failpoints] [--folder PATH] [--langgraph PYTHON]
KILLS         how many children are killed at random moments, for each store, graph and durability (default 100)
--store       files of SQLite, a Postgres that is started for this, or one that is there; by default the first two
--seed S      begins with this seed; with KILLS 1 it is the only one
--failpoints  instead: each durable write once, before and after it
--langgraph P kills LangGraph on that Python, and nothing else";

#[path = "../../crates/store/tests/cluster/mod.rs"]
mod cluster;
mod proving;

/// Postgres gives a dead process's thread away at once only when it has been up for longer than a lease.
const SHORT_LEASE_MS: u64 = 3_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.to_string()),
    };
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["child", order] => runtime.block_on(child(order)).map(|()| true),
        ["linger", order] => runtime.block_on(lingering(order)).map(|()| true),
        ["errand", errand] => runtime.block_on(on_errand(errand)).map(|()| true),
        ["busy", busy] => runtime.block_on(busily(busy)).map(|()| true),
        ["take", order] => runtime.block_on(taking(order)).map(|()| true),
        ["pace", place, thread, rate, seconds] => runtime
            .block_on(paced(place, thread, rate, seconds))
            .map(|()| true),
        ["prove", words @ ..] => proving::prove(words, &runtime),
        words => Asked::read(words).and_then(|asked| asked.answer(&runtime)),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::from(2)
}

async fn child(order: &str) -> Result<(), Fault> {
    obey(&serde_json::from_str(order)?).await
}

async fn on_errand(errand: &str) -> Result<(), Fault> {
    run_errand(&serde_json::from_str(errand)?).await
}

async fn busily(busy: &str) -> Result<(), Fault> {
    be_busy(&serde_json::from_str(busy)?).await
}

async fn lingering(order: &str) -> Result<(), Fault> {
    linger(&serde_json::from_str(order)?).await
}

async fn taking(order: &str) -> Result<(), Fault> {
    take(&serde_json::from_str(order)?).await
}

async fn paced(place: &str, thread: &str, rate: &str, seconds: &str) -> Result<(), Fault> {
    let place: Place = serde_json::from_str(place)?;
    let said = pace(&place, thread, rate.parse()?, seconds.parse()?).await?;
    println!("{}", serde_json::to_string(&said)?);
    Ok(())
}

/// What is asked for on the command line.
struct Asked {
    kills: usize,
    stores: Vec<String>,
    shapes: Vec<Shape>,
    durabilities: Vec<String>,
    seed: u64,
    failpoints: bool,
    folder: PathBuf,
    langgraph: Option<PathBuf>,
}

impl Asked {
    fn read(words: &[&str]) -> Result<Asked, Fault> {
        let mut asked = Asked {
            kills: 100,
            stores: Vec::new(),
            shapes: Vec::new(),
            durabilities: Vec::new(),
            seed: 1,
            failpoints: false,
            folder: std::env::temp_dir().join("paraph-crash"),
            langgraph: None,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().copied().ok_or(USAGE);
            match *word {
                "--store" => asked.stores.push(value()?.to_owned()),
                "--graph" => asked.shapes.push(shape(value()?)?),
                "--durability" => asked.durabilities.push(value()?.to_owned()),
                "--seed" => asked.seed = value()?.parse()?,
                "--folder" => asked.folder = value()?.into(),
                "--langgraph" => asked.langgraph = Some(value()?.into()),
                "--failpoints" => asked.failpoints = true,
                number => asked.kills = number.parse().map_err(|_| USAGE)?,
            }
        }
        if asked.stores.is_empty() {
            asked
                .stores
                .extend(["sqlite", "postgres"].map(str::to_owned));
        }
        if asked.shapes.is_empty() {
            asked.shapes.extend(Shape::ALL);
        }
        if asked.durabilities.is_empty() {
            asked.durabilities.push("sync".to_owned());
        }
        Ok(asked)
    }

    /// Runs it all; says whether nothing was found.
    fn answer(&self, runtime: &tokio::runtime::Runtime) -> Result<bool, Fault> {
        std::fs::create_dir_all(&self.folder)?;
        if let Some(python) = &self.langgraph {
            println!(
                "{}",
                peer_kills(python, &self.folder, self.seed, self.kills)?
            );
            return Ok(true);
        }
        let program = std::env::current_exe()?;
        let launch = Launch::of(program.to_string_lossy());
        let mut well = true;
        for store in &self.stores {
            let Some((stand, _server)) = self.stand(store) else {
                continue;
            };
            for &shape in &self.shapes {
                for durability in &self.durabilities {
                    let plan = Plan {
                        launch: &launch,
                        stand: &stand,
                        shape,
                        durability,
                        workers: 4,
                    };
                    let series = self.series(plan, runtime)?;
                    println!("{series}");
                    well &= series.failed.is_empty();
                }
            }
        }
        if !well {
            println!("What was found lies in {}", self.folder.display());
        }
        Ok(well)
    }

    /// Where the stores of that name are, and the server that must live as long; nothing where it cannot be.
    fn stand(&self, store: &str) -> Option<(Stand, Option<cluster::Cluster>)> {
        let at = |url: &str| {
            Stand::Database(Place {
                url: url.to_owned(),
                lease_ms: Some(SHORT_LEASE_MS),
            })
        };
        match store {
            "sqlite" => Some((Stand::Folder(self.folder.clone()), None)),
            "postgres" => {
                let server = cluster::Cluster::start()?;
                std::thread::sleep(std::time::Duration::from_millis(SHORT_LEASE_MS));
                Some((at(&server.url()), Some(server)))
            }
            url => Some((at(url), None)),
        }
    }

    fn series(&self, plan: Plan<'_>, runtime: &tokio::runtime::Runtime) -> Result<Series, Fault> {
        if self.failpoints {
            failpoints(plan, runtime.handle())
        } else {
            random_kills(plan, runtime.handle(), self.seed, self.kills)
        }
    }
}

fn shape(name: &str) -> Result<Shape, Fault> {
    let found = Shape::ALL
        .into_iter()
        .find(|shape| shape.to_string() == name);
    found.ok_or_else(|| USAGE.into())
}
