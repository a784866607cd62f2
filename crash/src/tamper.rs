//! Everything that can be done to the text of an audit and of an evidence pack, tried out: all of it has to be found.
//!
//! Called by `paraph-crash prove` and by tests. The chain is a small one, made by a real gateway with two effects, a
//! refusal, an edit and a kill switch; on it the trials are exhaustive. Whoever checks has one anchor, of the last
//! entry, kept elsewhere.

use std::collections::BTreeSet;

use paraph_gateway::{
    ActionRow, Anchor, Approvals, Ask, AuditEntry, Gateway, Limits, MemoryStore, Pack, PackReport,
    Policy, Reply, Scope, ToolCall, Verifier, Waiting,
    examples::{Comment, Pay},
};
use serde_json::Value;

use crate::Fault;
use crate::tally::Tally;

/// Whose chain it is: the one in which all switches are told.
const TENANT: &str = "local";

/// A chain, and an action of it.
struct Evidence {
    entries: Vec<AuditEntry>,
    anchor: Anchor,
    row: ActionRow,
}

async fn asked(gateway: &Gateway, key: &str, call: &ToolCall) -> Result<Option<Waiting>, Fault> {
    let session = gateway
        .session(Scope::new("clerk", "case-7"), Limits::default())
        .await?;
    match session.call(key, call).await? {
        Reply::Waiting(waiting) => Ok(Some(waiting)),
        _ => Ok(None),
    }
}

/// Lets a gateway do something of each kind.
async fn evidence() -> Result<Evidence, Fault> {
    let ask = Ask::default();
    let gateway = Gateway::builder(MemoryStore::shared())
        .effect(Pay::default())
        .effect(Comment::default())
        .policy(Policy::new().ask("pay", ask).ask("comment", ask))
        .build()?;
    let desk = gateway.approvals();
    let pay = ToolCall::native("pay", r#"{"cents":100}"#);
    let comment = ToolCall::native("comment", r#"{"text":"Fixed, see “notes”."}"#);
    let paying = asked(&gateway, "a", &pay)
        .await?
        .ok_or("nobody was asked")?;
    let writing = asked(&gateway, "b", &comment)
        .await?
        .ok_or("nobody was asked")?;
    desk.approve(paying.action, &paying.digest, "ann").await?;
    desk.kill("tool:pay", "ann", "looks odd").await?;
    desk.reject(writing.action, &writing.digest, "bob", "not now")
        .await?;
    desk.unkill("tool:pay", "ann").await?;
    let held = desk.show(paying.action).await?;
    let edited = gateway
        .edit(&held, &held.digest, "ann", r#"{"cents":90}"#)
        .await?;
    desk.approve(edited.id(), &edited.digest, "bob").await?;
    if asked(&gateway, "a", &pay).await?.is_some() {
        return Err("what was approved was not done".into());
    }
    collected(&desk, edited).await
}

async fn collected(desk: &Approvals, edited: ActionRow) -> Result<Evidence, Fault> {
    let entries = desk.audit(TENANT, 0, 1_000).await?;
    let last = entries.last().ok_or("the audit is empty")?;
    Ok(Evidence {
        anchor: Anchor::new(TENANT, &last.head(), 1),
        row: desk.show(edited.id()).await?,
        entries,
    })
}

/// Tampers with the export of a chain.
///
/// # Errors
/// When the chain cannot be made, or is not in order as it is.
pub async fn tampered_exports() -> Result<Tally, Fault> {
    let evidence = evidence().await?;
    let lines: Vec<String> = evidence
        .entries
        .iter()
        .map(|entry| entry.to_line() + "\n")
        .collect();
    let mut tally = Tally::of(format!(
        "tampering with an export of {} entries, {} bytes",
        lines.len(),
        lines.concat().len()
    ));
    if !holds(&evidence, lines.concat().as_bytes()) {
        return Err("the export is not in order as it is".into());
    }
    let mut verifier = Verifier::new(TENANT, [evidence.anchor.clone()]);
    for (n, (line, entry)) in lines.iter().zip(&evidence.entries).enumerate() {
        let rest: String = lines.iter().skip(n + 1).map(String::as_str).collect();
        for (how, changed) in changed_lines(line) {
            // The lines before are as they were, so that they are not read each time.
            let missed = follows(verifier.clone(), &[&changed, rest.as_bytes()].concat());
            tally.count(how.kind(), 1);
            tally.take(format!("line {n}, {how:?}"), missed_if(missed));
        }
        verifier.see(entry)?;
    }
    for (kind, how, moved) in rearranged(&lines) {
        tally.count(kind, 1);
        let missed = holds(&evidence, moved.concat().as_bytes());
        tally.take(how, missed_if(missed));
    }
    Ok(tally)
}

fn missed_if(missed: bool) -> Vec<String> {
    match missed {
        true => vec!["it was not found".to_owned()],
        false => Vec::new(),
    }
}

/// A change of a text at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Flip(usize, u8),
    Remove(usize),
    Double(usize),
    CutOff(usize),
}

impl Change {
    fn kind(self) -> &'static str {
        match self {
            Change::Flip(..) => "bits flipped",
            Change::Remove(_) => "bytes removed",
            Change::Double(_) => "bytes doubled",
            Change::CutOff(_) => "cut off within",
        }
    }

    /// The text after it.
    fn of(self, text: &[u8]) -> Vec<u8> {
        let mut bytes = text.to_vec();
        match self {
            Change::Flip(at, bit) => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
            Change::Remove(at) => drop(bytes.remove(at)),
            Change::Double(at) => {
                if let Some(byte) = text.get(at) {
                    bytes.insert(at, *byte);
                }
            }
            Change::CutOff(at) => bytes.truncate(at),
        }
        bytes
    }
}

/// Each change of a line that makes another one of it.
fn changed_lines(line: &str) -> impl Iterator<Item = (Change, Vec<u8>)> + '_ {
    let places = (0..line.len()).flat_map(|at| {
        let flips = (0..8).map(move |bit| Change::Flip(at, bit));
        flips.chain([Change::Remove(at), Change::Double(at), Change::CutOff(at)])
    });
    let all = places.map(|how| (how, how.of(line.as_bytes())));
    all.filter(|(_, changed)| changed != line.as_bytes())
}

/// Every order and number of lines that one move makes of them.
fn rearranged(lines: &[String]) -> Vec<(&'static str, String, Vec<String>)> {
    let n = lines.len();
    let mut seen: BTreeSet<Vec<String>> = BTreeSet::from([lines.to_vec()]);
    let mut all = Vec::new();
    let mut add = |kind, how: String, made: Vec<String>| {
        if seen.insert(made.clone()) {
            all.push((kind, how, made));
        }
    };
    for a in 0..n {
        let mut made = lines.to_vec();
        let line = made.remove(a);
        add("lines dropped", format!("without line {a}"), made.clone());
        add(
            "tails cut off",
            format!("the first {a} lines"),
            lines.get(..a).unwrap_or_default().to_vec(),
        );
        for b in 0..n {
            let mut moved = made.clone();
            moved.insert(b, line.clone());
            add("lines moved", format!("line {a} at {b}"), moved);
            let mut doubled = lines.to_vec();
            doubled.insert(b, line.clone());
            add("lines doubled", format!("line {a} again at {b}"), doubled);
            let mut swapped = lines.to_vec();
            swapped.swap(a, b);
            add("lines swapped", format!("lines {a} and {b}"), swapped);
        }
    }
    all
}

/// Whether a text is taken for the whole export.
fn holds(evidence: &Evidence, text: &[u8]) -> bool {
    follows(Verifier::new(TENANT, [evidence.anchor.clone()]), text)
}

/// Whether a text is taken for what comes after what the verifier has seen.
fn follows(mut verifier: Verifier, text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else {
        return false;
    };
    for line in text.split_inclusive('\n') {
        let entry = line.strip_suffix('\n').map(AuditEntry::from_line);
        let Some(Ok(entry)) = entry else {
            return false;
        };
        if verifier.see(&entry).is_err() {
            return false;
        }
    }
    verifier.finish().is_ok()
}

/// Tampers with an evidence pack; with one bit of each byte, or with all.
///
/// # Errors
/// When the pack cannot be made, or is not in order as it is.
pub async fn tampered_packs(all_bits: bool) -> Result<Tally, Fault> {
    let evidence = evidence().await?;
    let mut pack = Pack::of(&evidence.row.action.bytes, &evidence.row.digest)?;
    for entry in &evidence.entries {
        pack.see(entry.clone())?;
    }
    let text = pack
        .close(std::slice::from_ref(&evidence.anchor))
        .to_string();
    let proved = proves(&evidence, text.as_bytes()).ok_or("the pack proves nothing as it is")?;
    let mut tally = Tally::of(format!("tampering with a pack of {} bytes", text.len()));
    // What a pack says of its own anchors proves nothing, and the reader has a better one.
    let own_anchors = text
        .rfind("\"anchors\":")
        .ok_or("the pack has no anchors")?;
    for at in 0..text.len() {
        let mut bits = 0..8;
        if !all_bits {
            let bit = (at % 8) as u8;
            bits = bit..bit + 1;
        }
        for bit in bits {
            let changed = Change::Flip(at, bit).of(text.as_bytes());
            tally.count("bits flipped", 1);
            let missed = misread(&evidence, &changed, &proved);
            if at > own_anchors && missed == Some(Misread::TheSame) {
                tally.count("of them in its own anchors and without consequence", 1);
                continue;
            }
            tally.take(format!("byte {at}, bit {bit}"), words(missed));
        }
    }
    let mut json: Value = serde_json::from_str(&text)?;
    let links = json["links"].as_array().cloned().unwrap_or_default();
    let texts: Vec<String> = links.iter().map(Value::to_string).collect();
    for (kind, how, moved) in rearranged(&texts) {
        let moved: Result<Vec<Value>, _> = moved
            .iter()
            .map(|link| serde_json::from_str(link))
            .collect();
        json["links"] = Value::Array(moved?);
        tally.count(kind, 1);
        let changed = json.to_string();
        let missed = misread(&evidence, changed.as_bytes(), &proved);
        tally.take(how, words(missed));
    }
    Ok(tally)
}

/// What a pack proves to whoever has the anchor; nothing if that does not vouch for it.
fn proves(evidence: &Evidence, text: &[u8]) -> Option<PackReport> {
    let text = std::str::from_utf8(text).ok()?;
    let report = Pack::check(text, std::slice::from_ref(&evidence.anchor)).ok()?;
    report.trusted.then_some(report)
}

/// What a changed pack proves all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Misread {
    TheSame,
    SomethingElse(Box<PackReport>),
}

fn misread(evidence: &Evidence, text: &[u8], proved: &PackReport) -> Option<Misread> {
    let report = proves(evidence, text)?;
    Some(match report == *proved {
        true => Misread::TheSame,
        false => Misread::SomethingElse(Box::new(report)),
    })
}

fn words(missed: Option<Misread>) -> Vec<String> {
    let words = |missed| format!("it was not found, and proves {missed:?}");
    missed.map(words).into_iter().collect()
}
