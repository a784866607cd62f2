//! Long-term memory: documents in namespaces, with search by words and expiry by the database's clock.
//!
//! Called by the engine for nodes (`ctx.memory()`), and by whoever serves it. A namespace is one text in
//! which a prefix is a range ([`label`]), so that no search reads what lies beside it. What has expired is
//! invisible from that moment on, and removed by the next write.

use crate::{
    codec::{Codec, Place},
    database::{Database, Fault},
    durable::Durable,
    error::damaged,
    sql::{BadCell, Row, Statement, Tx, one},
    verify::each_row,
};
use futures::future::BoxFuture;
use paraph_graph::{Error, Item, Memory, Namespace, Query, memory_key_fits};
use serde_json::Value;
use std::{sync::Arc, time::Duration};

mod label;

/// How many documents a search has in hand at a time, beyond those it has found.
const PAGE: u64 = 500;

/// Writes of memory are in one order.
const LANE: &str = "memory";

macro_rules! select {
    ($which:literal) => {
        concat!(
            "SELECT namespace, key, created_ms, updated_ms, value, value_packed, sum FROM memory ",
            $which
        )
    };
}

fn place(namespace: &str, key: &str) -> Place {
    Place::new("memory").text(namespace).text(key)
}

fn read(codec: &Codec, row: Row) -> Result<Item, Error> {
    let at = || {
        let namespace = row
            .text(0)
            .map_or_else(|_| "?".to_owned(), |n| label::split(n).join("/"));
        format!(
            "document `{}` of memory `{namespace}`",
            row.text(1).unwrap_or("?")
        )
    };
    let at = at();
    let bad = |why: String| damaged(at.as_str(), why);
    let bad_cell = |e: BadCell| bad(e.to_string());
    let namespace = row.text(0).map_err(bad_cell)?.to_owned();
    let key = row.text(1).map_err(bad_cell)?.to_owned();
    let (created_ms, updated_ms) = (
        row.unsigned(2).map_err(bad_cell)?,
        row.unsigned(3).map_err(bad_cell)?,
    );
    let sum = row.int(6).map_err(bad_cell)?;
    let mut cells = row.0.into_iter().skip(4);
    let (text, packed) = (cells.next(), cells.next());
    let json = codec
        .take_one(
            &place(&namespace, &key),
            text.unwrap_or_default(),
            packed.unwrap_or_default(),
            sum,
        )
        .map_err(bad)?;
    Ok(Item {
        namespace: label::split(&namespace),
        key,
        value: serde_json::from_slice(&json).map_err(|e| bad(e.to_string()))?,
        created_ms,
        updated_ms,
        score: None,
    })
}

/// What a search is for, and the best it has found.
struct Search {
    words: Vec<String>,
    query: Query,
    found: Vec<Item>,
}

impl Search {
    fn new(query: Query) -> Self {
        let text = query.text.as_deref().unwrap_or_default().to_lowercase();
        Search {
            words: text.split_whitespace().map(str::to_owned).collect(),
            query,
            found: Vec::new(),
        }
    }

    /// Takes a document in, if it is wanted.
    fn see(&mut self, mut item: Item) {
        let fits = |(key, wanted): (&String, &Value)| item.value.get(key) == Some(wanted);
        if !self.query.filter.iter().all(fits) {
            return;
        }
        if !self.words.is_empty() {
            let text = format!("{} {}", item.key, item.value).to_lowercase();
            let found = self.words.iter().filter(|w| text.contains(w.as_str()));
            let share = found.count() as f64 / self.words.len() as f64;
            if share <= 0.0 {
                return;
            }
            item.score = Some(share);
        }
        self.found.push(item);
    }

    /// Forgets what is not among the best. Those that are equally good stay in the order of their names.
    fn sort(&mut self) {
        if self.words.is_empty() {
            self.found
                .sort_by_key(|item| std::cmp::Reverse(item.updated_ms));
        } else {
            let score = |item: &Item| item.score.unwrap_or_default();
            self.found.sort_by(|a, b| score(b).total_cmp(&score(a)));
        }
        self.found
            .truncate(self.query.offset.saturating_add(self.query.limit));
    }

    fn end(mut self) -> Vec<Item> {
        self.sort();
        self.found.drain(..self.query.offset.min(self.found.len()));
        self.found
    }
}

/// All documents below a prefix that have not expired, page by page.
async fn search(
    tx: &mut dyn Tx,
    codec: &Codec,
    namespace: &[String],
    query: Query,
    now_ms: u64,
) -> Result<Vec<Item>, Fault> {
    let (from, to) = label::range(namespace);
    let mut at = (from, String::new());
    let mut search = Search::new(query);
    loop {
        let next = Statement::new(
            select!(
                "WHERE (namespace, key) >= ($1, $2) AND namespace < $3 \
                 AND (expires_ms IS NULL OR expires_ms > $4) ORDER BY namespace, key LIMIT $5"
            ),
            [
                at.0.as_str().into(),
                at.1.as_str().into(),
                to.as_str().into(),
                now_ms.into(),
                PAGE.into(),
            ],
        );
        let mut rows = one(tx, next).await?.rows;
        // The row from which the next page begins is the first of that one.
        let next = match rows.pop() {
            Some(row) if rows.len() as u64 + 1 == PAGE => row,
            last => {
                for row in rows.into_iter().chain(last) {
                    search.see(read(codec, row)?);
                }
                return Ok(search.end());
            }
        };
        let name = |column| next.text(column).map(str::to_owned);
        let place = name(0).and_then(|namespace| Ok((namespace, name(1)?)));
        at = place.map_err(|e| damaged("a document of memory", e.to_string()))?;
        for row in rows {
            search.see(read(codec, row)?);
        }
        search.sort();
    }
}

/// Reads all documents; says of each what is wrong with it.
pub(crate) async fn verify(
    tx: &mut dyn Tx,
    codec: &Codec,
    problems: &mut Vec<String>,
) -> Result<(), Fault> {
    let sql = select!("WHERE (namespace, key) > ($1, $2) ORDER BY namespace, key LIMIT $3");
    let see = |row: Row| {
        if let Err(error) = read(codec, row) {
            problems.push(error.to_string());
        }
    };
    each_row(tx, sql, ([0, 1], "a document of memory"), see).await
}

async fn put(
    tx: &mut dyn Tx,
    codec: &Codec,
    at: (&str, &str),
    json: &str,
    times: (u64, Option<u64>),
) -> Result<(), Fault> {
    let (now_ms, expires_ms) = times;
    let (doc, sum) = codec.put_one(&place(at.0, at.1), json.as_bytes());
    let [value, packed] = doc.cells();
    let sweep = Statement::new("DELETE FROM memory WHERE expires_ms <= $1", [now_ms.into()]);
    let insert = Statement::new(
        "INSERT INTO memory (namespace, key, created_ms, updated_ms, expires_ms, value, value_packed, sum) \
         VALUES ($1, $2, $3, $3, $4, $5, $6, $7) ON CONFLICT (namespace, key) DO UPDATE SET \
         updated_ms = excluded.updated_ms, expires_ms = excluded.expires_ms, value = excluded.value, \
         value_packed = excluded.value_packed, sum = excluded.sum",
        [
            at.0.into(),
            at.1.into(),
            now_ms.into(),
            expires_ms.into(),
            value,
            packed,
            sum.into(),
        ],
    );
    Ok(tx.later(vec![sweep, insert]).await?)
}

impl<D: Database> Memory for Durable<D> {
    fn put<'a>(
        &'a self,
        namespace: &'a [String],
        key: &'a str,
        value: Value,
        ttl: Option<Duration>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        if let Err(refused) = memory_key_fits(namespace, key) {
            return Box::pin(std::future::ready(Err(refused)));
        }
        let codec = self.codec.clone();
        let (at, key) = (
            Arc::<str>::from(label::join(namespace)),
            Arc::<str>::from(key),
        );
        let json = Arc::<str>::from(value.to_string());
        Box::pin(async move {
            let now_ms = self.now_ms().await?;
            let expires_ms = ttl.map(|ttl| {
                now_ms.saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
            });
            self.write(LANE, move |tx| {
                let (codec, at, key, json) = (codec.clone(), at.clone(), key.clone(), json.clone());
                Box::pin(
                    async move { put(tx, &codec, (&at, &key), &json, (now_ms, expires_ms)).await },
                )
            })
            .await
        })
    }

    fn get<'a>(
        &'a self,
        namespace: &'a [String],
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Item>, Error>> {
        let codec = self.codec.clone();
        let (at, key) = (
            Arc::<str>::from(label::join(namespace)),
            Arc::<str>::from(key),
        );
        Box::pin(async move {
            let now_ms = self.now_ms().await?;
            self.read(move |tx| {
                let (codec, at, key) = (codec.clone(), at.clone(), key.clone());
                Box::pin(async move {
                    let find = Statement::new(
                        select!(
                            "WHERE namespace = $1 AND key = $2 \
                             AND (expires_ms IS NULL OR expires_ms > $3)"
                        ),
                        [(&*at).into(), (&*key).into(), now_ms.into()],
                    );
                    let row = one(tx, find).await?.first();
                    Ok(row.map(|row| read(&codec, row)).transpose()?)
                })
            })
            .await
        })
    }

    fn delete<'a>(
        &'a self,
        namespace: &'a [String],
        key: &'a str,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        let (at, key) = (
            Arc::<str>::from(label::join(namespace)),
            Arc::<str>::from(key),
        );
        Box::pin(async move {
            let now_ms = self.now_ms().await?;
            self.write(LANE, move |tx| {
                let (at, key) = (at.clone(), key.clone());
                Box::pin(async move {
                    // What has expired was not there to be removed.
                    let sweep = Statement::new(
                        "DELETE FROM memory WHERE expires_ms <= $1",
                        [now_ms.into()],
                    );
                    let delete = Statement::new(
                        "DELETE FROM memory WHERE namespace = $1 AND key = $2",
                        [(&*at).into(), (&*key).into()],
                    );
                    let answers = tx.all(vec![sweep, delete]).await?;
                    Ok(answers.last().is_some_and(|answer| answer.written > 0))
                })
            })
            .await
        })
    }

    fn search<'a>(
        &'a self,
        namespace: &'a [String],
        query: &'a Query,
    ) -> BoxFuture<'a, Result<Vec<Item>, Error>> {
        let codec = self.codec.clone();
        let asked = Arc::new((namespace.to_vec(), query.clone()));
        Box::pin(async move {
            let now_ms = self.now_ms().await?;
            self.read(move |tx| {
                let (codec, asked) = (codec.clone(), asked.clone());
                Box::pin(async move { search(tx, &codec, &asked.0, asked.1.clone(), now_ms).await })
            })
            .await
        })
    }

    fn namespaces<'a>(
        &'a self,
        prefix: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<Namespace>, Error>> {
        let (from, to) = label::range(prefix);
        Box::pin(async move {
            let now_ms = self.now_ms().await?;
            self.read(move |tx| {
                let (from, to) = (from.clone(), to.clone());
                Box::pin(async move {
                    let names = Statement::new(
                        "SELECT DISTINCT namespace FROM memory WHERE namespace >= $1 AND namespace < $2 \
                         AND (expires_ms IS NULL OR expires_ms > $3) ORDER BY namespace",
                        [from.into(), to.into(), now_ms.into()],
                    );
                    let mut all = Vec::new();
                    for row in one(tx, names).await?.rows {
                        let bad = |e: BadCell| damaged("a namespace of memory", e.to_string());
                        all.push(label::split(row.text(0).map_err(bad)?));
                    }
                    Ok(all)
                })
            })
            .await
        })
    }
}
