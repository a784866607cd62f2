//! Rows of the corpus: statements that write them, and what is read of them.

use crate::{
    codec::{Codec, Place},
    error::damaged,
    sql::{BadCell, Cell, Row, Statement},
};
use paraph_graph::Error;
use paraph_retrieval::{Cursor, Document, Floor, IssueRef, Kept, Known, Vectors};
use serde::{Serialize, de::DeserializeOwned};

macro_rules! select {
    ($which:literal) => {
        concat!(
            "SELECT d.repo, d.number, d.hash, d.value, d.value_packed, d.sum, v.dims, v.value, v.value_packed, v.sum \
             FROM corpus_document d LEFT JOIN corpus_vectors v ON v.repo = d.repo AND v.number = d.number ",
            $which
        )
    };
}

fn place(table: &'static str, id: &IssueRef) -> Place {
    Place::new(table).text(&id.repo).int(id.number)
}

/// The column of a document, alone in its row.
const VALUE: &str = "value";

fn json(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(Error::store)
}

/// Puts a document and its vectors in the place of what was there.
pub(super) fn put(codec: &Codec, kept: &Kept) -> Result<Vec<Statement<'static>>, Error> {
    let id = kept.document.id();
    let (hash, json) = (kept.document.content_hash(), json(&kept.document)?);
    let ([doc], sum) = codec.put(
        &place("corpus_document", &id),
        &[&hash],
        [(VALUE, Some(&json))],
    );
    let [value, packed] = doc.owned().cells();
    let document = Statement::new(
        "INSERT INTO corpus_document (repo, number, hash, value, value_packed, sum) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (repo, number) DO UPDATE SET hash = excluded.hash, \
         value = excluded.value, value_packed = excluded.value_packed, sum = excluded.sum",
        [
            id.repo.clone().into(),
            id.number.into(),
            hash.to_vec().into(),
            value,
            packed,
            sum.into(),
        ],
    );
    if kept.vectors.is_empty() {
        return Ok(vec![document, forget(&id)]);
    }
    let dims = kept.vectors.dims() as u64;
    let bytes = kept.vectors.to_bytes();
    let place = place("corpus_vectors", &id);
    let ([doc], sum) = codec.put(&place, &[&dims.to_le_bytes()], [(VALUE, Some(&bytes))]);
    let [value, packed] = doc.owned().cells();
    let vectors = Statement::new(
        "INSERT INTO corpus_vectors (repo, number, dims, value, value_packed, sum) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (repo, number) DO UPDATE SET dims = excluded.dims, \
         value = excluded.value, value_packed = excluded.value_packed, sum = excluded.sum",
        [
            id.repo.into(),
            id.number.into(),
            dims.into(),
            value,
            packed,
            sum.into(),
        ],
    );
    Ok(vec![document, vectors])
}

/// Removes a document's vectors.
fn forget(id: &IssueRef) -> Statement<'static> {
    Statement::new(
        "DELETE FROM corpus_vectors WHERE repo = $1 AND number = $2",
        [id.repo.clone().into(), id.number.into()],
    )
}

/// Removes a document.
pub(super) fn remove(id: &IssueRef) -> [Statement<'static>; 2] {
    let document = Statement::new(
        "DELETE FROM corpus_document WHERE repo = $1 AND number = $2",
        [id.repo.clone().into(), id.number.into()],
    );
    [document, forget(id)]
}

/// Documents behind one, in the order of their ids.
pub(super) fn page(after: Option<&IssueRef>, limit: usize) -> Statement<'static> {
    let (repo, number) = after.map_or((String::new(), 0), |id| (id.repo.clone(), id.number));
    Statement::new(
        select!("WHERE (d.repo, d.number) > ($1, $2) ORDER BY d.repo, d.number LIMIT $3"),
        [repo.into(), number.into(), (limit as u64).into()],
    )
}

pub(super) fn get(id: &IssueRef) -> Statement<'static> {
    Statement::new(
        select!("WHERE d.repo = $1 AND d.number = $2"),
        [id.repo.to_lowercase().into(), id.number.into()],
    )
}

/// Which issue a row is of.
pub(super) fn id(row: &Row) -> Result<IssueRef, Error> {
    let bad = |e: BadCell| damaged("a row in table corpus_document", e.to_string());
    Ok(IssueRef {
        repo: row.text(0).map_err(bad)?.to_owned(),
        number: row.unsigned(1).map_err(bad)?,
    })
}

/// What [`put`] wrote.
pub(super) fn read(codec: &Codec, mut row: Row) -> Result<Kept, Error> {
    let id = id(&row)?;
    let of = |what: &str| format!("the {what} of issue {id} in the corpus");
    let bad = |why: String| damaged(of("text"), why);
    let cell = |e: BadCell| bad(e.to_string());
    let hash = row.opt_bytes(2).map_err(cell)?.unwrap_or_default().to_vec();
    let sum = row.int(5).map_err(cell)?;
    let columns = [(VALUE, row.take(3), row.take(4))];
    let [found] = codec
        .take(&place("corpus_document", &id), &[&hash], columns, sum)
        .map_err(bad)?;
    let found = found.ok_or_else(|| bad("`value` is missing".to_owned()))?;
    let document: Document = serde_json::from_slice(&found).map_err(|e| bad(e.to_string()))?;
    if document.id() != id || document.content_hash().as_slice() != hash {
        return Err(bad("it is not the issue that its row says".to_owned()));
    }
    let vectors = read_vectors(codec, &id, &mut row).map_err(|why| damaged(of("vectors"), why))?;
    Ok(Kept { document, vectors })
}

fn read_vectors(codec: &Codec, id: &IssueRef, row: &mut Row) -> Result<Vectors, String> {
    let cell = |e: BadCell| e.to_string();
    if row.opt_int(6).map_err(cell)?.is_none() {
        return Ok(Vectors::default());
    }
    let (dims, sum) = (row.unsigned(6).map_err(cell)?, row.int(9).map_err(cell)?);
    let columns = [(VALUE, row.take(7), row.take(8))];
    let place = place("corpus_vectors", id);
    let [found] = codec.take(&place, &[&dims.to_le_bytes()], columns, sum)?;
    let found = found.ok_or_else(|| "`value` is missing".to_owned())?;
    Vectors::from_bytes(usize::try_from(dims).unwrap_or(usize::MAX), &found)
}

pub(super) fn known(repo: &str) -> Statement<'static> {
    Statement::new(
        "SELECT repo, number, hash FROM corpus_document WHERE repo = $1 ORDER BY number",
        [repo.to_lowercase().into()],
    )
}

pub(super) fn read_known(row: &Row) -> Result<Known, Error> {
    let id = id(row)?;
    let bad = |why: String| damaged(format!("the row of issue {id} in the corpus"), why);
    let hash = row.opt_bytes(2).map_err(|e| bad(e.to_string()))?;
    let hash = hash.and_then(|hash| hash.try_into().ok());
    Ok(Known {
        number: id.number,
        hash: hash.ok_or_else(|| bad("its hash has not 32 bytes".to_owned()))?,
    })
}

/// A row of one document, under a name: its statement's last four values.
fn named<'a>(
    codec: &Codec,
    (table, name): (&'static str, &str),
    value: &impl Serialize,
) -> Result<[Cell<'a>; 3], Error> {
    let json = json(value)?;
    let (doc, sum) = codec.put_one(&Place::new(table).text(name), &json);
    let [value, packed] = doc.owned().cells();
    Ok([value, packed, sum.into()])
}

/// What [`named`] wrote, from a row's first four columns.
fn read_named<T: DeserializeOwned>(
    codec: &Codec,
    (table, name): (&'static str, &str),
    mut row: Row,
) -> Result<T, Error> {
    let bad = |why: String| damaged(format!("the row `{name}` in table {table}"), why);
    let sum = row.int(3).map_err(|e| bad(e.to_string()))?;
    let (value, packed) = (row.take(1), row.take(2));
    let found = codec
        .take_one(&Place::new(table).text(name), value, packed, sum)
        .map_err(bad)?;
    serde_json::from_slice(&found).map_err(|e| bad(e.to_string()))
}

const CURSOR: &str = "corpus_cursor";

pub(super) fn put_cursor(codec: &Codec, cursor: &Cursor) -> Result<Statement<'static>, Error> {
    let [value, packed, sum] = named(codec, (CURSOR, &cursor.repo), cursor)?;
    Ok(Statement::new(
        "INSERT INTO corpus_cursor (repo, value, value_packed, sum) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (repo) DO UPDATE SET value = excluded.value, value_packed = excluded.value_packed, \
         sum = excluded.sum",
        [cursor.repo.clone().into(), value, packed, sum],
    ))
}

pub(super) fn cursors() -> Statement<'static> {
    Statement::new(
        "SELECT repo, value, value_packed, sum FROM corpus_cursor ORDER BY repo",
        [],
    )
}

pub(super) fn read_cursor(codec: &Codec, row: Row) -> Result<Cursor, Error> {
    let name = row.text(0).unwrap_or("?").to_owned();
    read_named(codec, (CURSOR, &name), row)
}

const FLOORS: (&str, &str) = ("corpus_floors", "1");

pub(super) fn put_floors(codec: &Codec, floors: &[Floor]) -> Result<Statement<'static>, Error> {
    let [value, packed, sum] = named(codec, FLOORS, &floors)?;
    Ok(Statement::new(
        "INSERT INTO corpus_floors (one, value, value_packed, sum) VALUES (1, $1, $2, $3) \
         ON CONFLICT (one) DO UPDATE SET value = excluded.value, value_packed = excluded.value_packed, \
         sum = excluded.sum",
        [value, packed, sum],
    ))
}

pub(super) fn floors() -> Statement<'static> {
    Statement::new(
        "SELECT one, value, value_packed, sum FROM corpus_floors",
        [],
    )
}

pub(super) fn read_floors(codec: &Codec, row: Row) -> Result<Vec<Floor>, Error> {
    read_named(codec, FLOORS, row)
}
