//! Measures retrieval on GitBugs (`just bench-retrieval`): how often a known duplicate is found, how many foreign queries
//! pass the topical floor, how quickly issues are embedded and a large corpus is searched.
//!
//! Called with the folder of the data and the folder of the sentence model. Figures are given for the clusters
//! of duplicates with even numbers, for those with odd ones, and for all: constants of the ranking were chosen with both
//! in sight, so the halves show how much figures vary and no more. It must not be used as a test: the data is not part of the project.

mod cached;
mod csv;
mod figures;
mod large;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use paraph_models::{Embedder, LocalEmbedder};
use paraph_retrieval::{
    Batch, Corpus, Document, FloorKind, Hit, Identity, IssueRef, Kept, MemoryCorpus, Pools, Query,
    Retriever, Targets, Vectors, calibrate, chunks, plot,
};

use cached::Cached;
use figures::{Halves, print_pass, print_ranks};

type Failure = Box<dyn std::error::Error>;

/// How many hits are looked at for a known duplicate.
const DEEP: usize = 100;

/// The corpora: the name of their files, and what they are called here.
const CORPORA: [(&str, &str); 2] = [("hadoop_bugs", "Hadoop"), ("SeaMonkey_bugs", "SeaMonkey")];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1).map(PathBuf::from);
    let (Some(data), Some(model), Some(target)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: gitbugs DATA MODEL TARGET".into());
    };
    let embedder = Arc::new(Cached::open(
        LocalEmbedder::open(&model)?,
        &target.join("gitbugs-vectors.bin"),
    )?);
    let mut all = Vec::new();
    for (file, name) in CORPORA {
        all.push(Bugs::read(&data, (file, name), &embedder).await?);
    }
    embedder.save()?;
    println!("embedding: {}", embedder.speed());
    for bugs in &all {
        bugs.measure().await?;
    }
    embedder.save()?;
    if let [one, other] = all.as_slice() {
        one.calibrate(other, &target).await?;
        other.calibrate(one, &target).await?;
    }
    embedder.save()?;
    large::measure().await
}

/// One corpus and what is known of it.
struct Bugs {
    name: &'static str,
    documents: Vec<Document>,
    /// For each issue of which a duplicate is known: its duplicates, and its cluster.
    gold: BTreeMap<u64, (BTreeSet<u64>, usize)>,
    dense: Retriever,
    lexical: Retriever,
}

impl Bugs {
    async fn read(
        data: &Path,
        (file, name): (&str, &'static str),
        embedder: &Arc<Cached>,
    ) -> Result<Bugs, Failure> {
        let rows = csv::read(&data.join(format!("{file}.csv.gz")))?;
        let documents: Vec<Document> = rows.iter().filter_map(|row| document(name, row)).collect();
        let numbers: BTreeSet<u64> = documents.iter().map(|document| document.number).collect();
        let pairs = csv::read(&data.join(format!("{file}-combined.csv.gz")))?;
        let gold = gold(&pairs, &numbers);
        let corpus: Arc<dyn Corpus> = Arc::new(MemoryCorpus::default());
        let mut many = 0;
        for group in documents.chunks(100) {
            let mut put = Vec::new();
            for document in group {
                let texts: Vec<String> = chunks(document)
                    .iter()
                    .map(|chunk| match chunk.text == chunk.title {
                        true => chunk.title.clone(),
                        false => format!("{}\n\n{}", chunk.title, chunk.text),
                    })
                    .collect();
                many += texts.len();
                let vectors = Vectors::of(&embedder.embed(&texts).await?.vectors)?;
                put.push(Kept {
                    document: document.clone(),
                    vectors,
                });
            }
            let identity =
                Identity::embedded(embedder.name(), embedder.dimension().unwrap_or_default());
            corpus
                .apply(Batch {
                    identity,
                    put,
                    remove: vec![],
                    cursor: None,
                })
                .await?;
        }
        println!(
            "{name}: {} issues, {many} chunks, {} with a known duplicate",
            documents.len(),
            gold.len()
        );
        Ok(Bugs {
            name,
            documents,
            gold,
            dense: Retriever::new(corpus.clone(), Some(embedder.clone())),
            lexical: Retriever::new(corpus, None),
        })
    }

    /// How early a known duplicate comes.
    async fn measure(&self) -> Result<(), Failure> {
        let (mut fused, mut lexical, mut dense) =
            (Halves::default(), Halves::default(), Halves::default());
        for document in &self.documents {
            let Some((same, cluster)) = self.gold.get(&document.number) else {
                continue;
            };
            let half = cluster % 2 == 1;
            let query = Query {
                k: DEEP,
                ..Query::of(document)
            };
            let is_same = |hit: &Hit| same.contains(&hit.chunk.number);
            let hits = self.dense.search(&query).await?;
            fused
                .of(half)
                .push(hits.iter().position(is_same).map(|rank| rank + 1));
            let by_meaning = hits
                .iter()
                .filter(|hit| is_same(hit))
                .filter_map(|hit| hit.dense_rank)
                .min();
            dense.of(half).push(by_meaning);
            let hits = self.lexical.search(&query).await?;
            lexical
                .of(half)
                .push(hits.iter().position(is_same).map(|rank| rank + 1));
        }
        println!("\n{}", self.name);
        for (method, halves) in [("words", &lexical), ("meaning", &dense), ("fused", &fused)] {
            print_ranks(method, halves);
        }
        Ok(())
    }

    /// Fits floors on one half of the other corpus's issues and tries them on the other half.
    async fn calibrate(&self, other: &Bugs, target: &Path) -> Result<(), Failure> {
        let foreign = |odd: usize| {
            other
                .documents
                .iter()
                .skip(odd)
                .step_by(2)
                .map(|document| Query::of(document).text)
        };
        let pairs: Vec<(IssueRef, IssueRef)> = self
            .gold
            .iter()
            .flat_map(|(one, (same, _))| {
                same.iter()
                    .map(|other| (self.issue(*one), self.issue(*other)))
            })
            .collect();
        let fitted: Vec<String> = foreign(0).collect();
        let pools = Pools::of(&self.dense, &pairs, &fitted, self.documents.len()).await?;
        let began = Instant::now();
        let done = calibrate(
            &self.dense,
            &pools,
            Targets::default(),
            ("2026-01-01T00:00:00Z", &|_, _| {}),
        )
        .await?;
        println!(
            "\n{}: floors, fitted in {:.0} s on {} foreign queries",
            self.name,
            began.elapsed().as_secs_f64(),
            fitted.len()
        );
        std::fs::write(
            target.join(format!("calibration-{}.svg", self.name)),
            plot(&done),
        )?;
        self.dense.corpus().keep_floors(done.floors.clone()).await?;
        for floor in &done.floors {
            println!("  {floor:?}");
        }
        for (how, retriever) in [("meaning", &self.dense), ("words", &self.lexical)] {
            let floors = retriever.floors().await?;
            let mut passed = 0;
            let mut asked = 0;
            for text in foreign(1) {
                let hits = retriever.search(&Query::new(text)).await?;
                let gates: Result<Vec<bool>, _> = hits
                    .iter()
                    .map(|hit| {
                        Ok::<_, paraph_retrieval::Error>(
                            floors.gate(FloorKind::Topical, hit)?.passes(),
                        )
                    })
                    .collect();
                asked += 1;
                passed += u64::from(gates?.contains(&true));
            }
            print_pass(how, passed, asked);
        }
        Ok(())
    }

    fn issue(&self, number: u64) -> IssueRef {
        IssueRef::new(&format!("gitbugs/{}", self.name), number)
    }
}

fn document(name: &str, row: &BTreeMap<String, String>) -> Option<Document> {
    let field = |key: &str| row.get(key).cloned().unwrap_or_default();
    let number: u64 = field("Issue id").trim().parse().ok()?;
    let document = Document {
        repo: format!("gitbugs/{name}"),
        number,
        title: field("Summary"),
        body: field("Description"),
        url: format!("https://example.org/{name}/{number}"),
        updated_at: "2026-01-01T00:00:00Z".to_owned(),
        ..Document::default()
    };
    document.tidied().ok()
}

/// Known duplicates in both directions, with the cluster that each issue belongs to.
fn gold(
    pairs: &[BTreeMap<String, String>],
    numbers: &BTreeSet<u64>,
) -> BTreeMap<u64, (BTreeSet<u64>, usize)> {
    let mut same: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for row in pairs {
        let Some(one) = row.get("Issue id").and_then(|id| id.trim().parse().ok()) else {
            continue;
        };
        let others = row
            .get("Duplicate id")
            .map(String::as_str)
            .unwrap_or_default();
        for other in others
            .split([';', ',', ' '])
            .filter_map(|id| id.trim().parse().ok())
        {
            if one != other && numbers.contains(&one) && numbers.contains(&other) {
                same.entry(one).or_default().insert(other);
                same.entry(other).or_default().insert(one);
            }
        }
    }
    let mut clusters: BTreeMap<u64, usize> = BTreeMap::new();
    let mut next = 0;
    for start in same.keys() {
        let mut ahead = vec![*start];
        if clusters.contains_key(start) {
            continue;
        }
        while let Some(one) = ahead.pop() {
            if clusters.insert(one, next).is_none() {
                ahead.extend(same.get(&one).into_iter().flatten());
            }
        }
        next += 1;
    }
    let cluster = |one: &u64| clusters.get(one).copied().unwrap_or_default();
    same.iter()
        .map(|(one, same)| (*one, (same.clone(), cluster(one))))
        .collect()
}
