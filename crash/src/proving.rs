//! `paraph-crash prove [PROOF…] [OPTIONS]`: the proofs of the gateway, at their full size or smaller.
//!
//! Called by `main`. It prints a line for each and says whether nothing was found.

use std::path::PathBuf;
use std::sync::Arc;

use crash::{
    Api, Errands, Fault, Launch, Place, Races, Stand, Stopping, Tally, calls_of_many, every_place,
    hostile_episodes, random_places, signatures_of_many, tampered_exports, tampered_packs,
    tokens_of_many,
};
use paraph_gateway::{MemoryStore, Store};
use tokio::runtime::Runtime;

use crate::SHORT_LEASE_MS;
use crate::cluster::Cluster;

pub(crate) const USAGE: &str = "\
usage: paraph-crash prove [PROOF…] [--of N] [--seed S] [--folder PATH]
PROOF     places kills race hostile audit budgets stops; all of them where none is named
--of N    how often instead of the full number: kills for each store and service, or rounds, or episodes
--seed S  where the seeds of kills and episodes begin";

/// The proofs, and how often each is tried where nothing else is said.
const PROOFS: [(&str, u64); 7] = [
    ("places", 1),
    ("kills", 2_500),
    ("race", 1_000),
    ("hostile", 100_000),
    ("audit", 1),
    ("budgets", 1_000),
    ("stops", 400),
];

/// What is asked for.
struct Asked {
    proofs: Vec<(&'static str, u64)>,
    seed: u64,
    folder: PathBuf,
}

impl Asked {
    fn read(words: &[&str]) -> Result<Asked, Fault> {
        let mut asked = Asked {
            proofs: Vec::new(),
            seed: 1,
            folder: std::env::temp_dir().join("paraph-crash"),
        };
        let mut of = None;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().copied().ok_or(USAGE);
            match *word {
                "--of" => of = Some(value()?.parse()?),
                "--seed" => asked.seed = value()?.parse()?,
                "--folder" => asked.folder = value()?.into(),
                name => {
                    let known = PROOFS.into_iter().find(|(known, _)| *known == name);
                    asked.proofs.push(known.ok_or(USAGE)?);
                }
            }
        }
        if asked.proofs.is_empty() {
            asked.proofs.extend(PROOFS);
        }
        for (_, times) in &mut asked.proofs {
            *times = of.unwrap_or(*times);
        }
        Ok(asked)
    }
}

/// A store that processes share, and the server that must live as long.
struct Ground {
    stand: Stand,
    name: &'static str,
    _server: Option<Cluster>,
}

impl Ground {
    /// Both kinds of store, as far as there are.
    fn both(folder: &std::path::Path) -> Vec<Ground> {
        let mut all = vec![Ground {
            stand: Stand::Folder(folder.to_owned()),
            name: "sqlite",
            _server: None,
        }];
        if let Some(server) = Cluster::start() {
            // A dead process's thread is given away at once only by a server that is older than a lease.
            std::thread::sleep(std::time::Duration::from_millis(SHORT_LEASE_MS));
            let place = Place {
                url: server.url(),
                lease_ms: Some(SHORT_LEASE_MS),
            };
            all.push(Ground {
                stand: Stand::Database(place),
                name: "postgres",
                _server: Some(server),
            });
        }
        all
    }

    /// An empty store in a file of this name, or the database there is.
    fn place(&self, name: &str) -> Place {
        self.stand.clear(name);
        self.stand.place(name)
    }
}

/// Does it all; says whether nothing was found.
pub(crate) fn prove(words: &[&str], runtime: &Runtime) -> Result<bool, Fault> {
    let asked = Asked::read(words)?;
    std::fs::create_dir_all(&asked.folder)?;
    let program = std::env::current_exe()?;
    let proving = Proving {
        runtime,
        launch: Launch::of(program.to_string_lossy()),
        grounds: Ground::both(&asked.folder),
        seed: asked.seed,
    };
    let mut well = true;
    for (proof, times) in asked.proofs {
        for tally in proving.tallies(proof, times)? {
            well &= tally.failures == 0;
        }
    }
    if !well {
        println!("What was found lies in {}", asked.folder.display());
    }
    Ok(well)
}

struct Proving<'a> {
    runtime: &'a Runtime,
    launch: Launch,
    grounds: Vec<Ground>,
    seed: u64,
}

impl Proving<'_> {
    fn tallies(&self, proof: &str, times: u64) -> Result<Vec<Tally>, Fault> {
        let mut all = Vec::new();
        let mut add = |tally: Tally| {
            println!("{tally}");
            all.push(tally);
        };
        match proof {
            "places" | "kills" => {
                for (ground, api) in self.errands() {
                    add(self.errand(proof, (ground, api), times)?);
                }
            }
            "race" => {
                for races in self.stores("race")? {
                    add(self.runtime.block_on(races.run(times))?);
                }
            }
            "hostile" => {
                let playing = hostile_episodes(times, self.seed, |store| store);
                add(self.runtime.block_on(playing)?);
            }
            "audit" => {
                add(self.runtime.block_on(tampered_exports())?);
                add(self.runtime.block_on(tampered_packs(true))?);
            }
            "budgets" => {
                add(self.runtime.block_on(calls_of_many(times))?);
                add(self.runtime.block_on(tokens_of_many(times))?);
                for Races { name, handles } in self.stores("budgets")? {
                    let rounds = times.div_ceil(10);
                    let signing = signatures_of_many((name, &handles), rounds);
                    add(self.runtime.block_on(signing)?);
                }
            }
            _ => {
                for ground in &self.grounds {
                    let launch = self.launch.clone().mode("busy");
                    let stopping = Stopping {
                        name: ground.name,
                        place: ground.place("stops"),
                        launch: &launch,
                        children: 3,
                    };
                    add(self.runtime.block_on(stopping.run(times))?);
                }
            }
        }
        Ok(all)
    }

    fn errands(&self) -> impl Iterator<Item = (&Ground, Api)> {
        let each = |ground| Api::ALL.map(|api| (ground, api));
        self.grounds.iter().flat_map(each)
    }

    fn errand(
        &self,
        proof: &str,
        (ground, api): (&Ground, Api),
        kills: u64,
    ) -> Result<Tally, Fault> {
        let launch = self.launch.clone().mode("errand");
        let plan = Errands {
            launch: &launch,
            stand: &ground.stand,
            api,
            flaw: None,
            // One errand is cut where its seed says, and runs alone.
            workers: if kills == 1 { 1 } else { 4 },
        };
        match proof {
            "places" => every_place(plan, self.runtime.handle()),
            _ => random_places(plan, self.runtime.handle(), self.seed, kills as usize),
        }
    }

    /// Handles to a store in memory, and to each of the others as three processes have them.
    fn stores(&self, name: &str) -> Result<Vec<Races>, Fault> {
        let mut all = vec![Races {
            name: "memory",
            handles: vec![MemoryStore::shared() as Arc<dyn Store>],
        }];
        for ground in &self.grounds {
            let place = ground.place(name);
            let mut handles = Vec::new();
            for _ in 0..3 {
                handles.push(self.runtime.block_on(place.gateway())?);
            }
            all.push(Races {
                name: ground.name,
                handles,
            });
        }
        Ok(all)
    }
}
