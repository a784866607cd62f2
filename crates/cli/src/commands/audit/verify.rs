//! `paraph audit verify`: every entry of a chain, in order, the anchors that were kept elsewhere, and whether actions
//! stand where the chain says.

use super::{PAGE, page};
use crate::args::AuditVerifyArgs;
use crate::cells::{count, time};
use crate::config::read_text;
use crate::failure::{BROKEN, FINISHED, Failure};
use crate::output::{note, print, print_json};
use crate::stores::Kept;
use crate::terminal::printable;
use paraph_gateway::{ActionId, ActionRow, Anchor, Astray, Broken, Head, Verified, Verifier};
use serde::Serialize;
use std::path::PathBuf;

#[derive(Serialize)]
struct Found<'a> {
    whole: bool,
    tenant: &'a str,
    entries: u64,
    attempts: u64,
    details: u64,
    erased: u64,
    anchored: u64,
    last_anchor_seq: Option<u64>,
    head_seq: Option<u64>,
    head_hash: Option<&'a str>,
    broken_at: Option<u64>,
    why: Option<String>,
    /// How many of the details that are gone no entry tells of.
    erased_untold: u64,
    /// Actions that somebody wrote approvals for by hand.
    unproved: Vec<ActionId>,
    /// Actions that do not stand where the chain says.
    astray: Vec<OneAstray>,
}

#[derive(Serialize)]
struct OneAstray {
    action: ActionId,
    why: String,
}

pub(super) async fn verify(kept: &Kept, args: &AuditVerifyArgs) -> Result<u8, Failure> {
    let tenant = args.chain.tenant.as_str();
    let anchors = anchors(&args.anchors)?;
    let others = anchors.iter().filter(|anchor| anchor.tenant != tenant);
    let others = others.count();
    if others > 0 {
        let others = count(others as u64, "anchor");
        note(&format!(
            "note: {others} of other tenants' chains: they check nothing here"
        ));
    }
    let checked = check(kept, tenant, anchors).await?;
    let unproved = unproved(kept, tenant).await?;
    let astray = kept.desk().astray(tenant).await;
    let astray = astray.map_err(|error| Failure::Broken(error.to_string()))?;
    if args.json {
        let found = Found {
            unproved: unproved.iter().map(ActionRow::id).collect(),
            astray: astray.iter().map(OneAstray::of).collect(),
            ..in_json(tenant, &checked)
        };
        print_json(&found)?;
    } else {
        match &checked {
            Ok(found) => print(&in_words(tenant, found))?,
            Err(broken) => print(&printable(&format!("BROKEN  {broken}")))?,
        }
        for row in &unproved {
            print(&format!(
                "FORGED  action {} is {}, and its approvals were not given at a desk with the seal key; nothing starts it",
                row.id(),
                row.state
            ))?;
        }
        for one in &astray {
            print(&format!("ASTRAY  {one}"))?;
        }
    }
    Ok(match (checked, unproved.is_empty() && astray.is_empty()) {
        (Ok(_), true) => FINISHED,
        _ => BROKEN,
    })
}

/// A tenant's actions whose approvals were written by hand.
async fn unproved(kept: &Kept, tenant: &str) -> Result<Vec<ActionRow>, Failure> {
    let rows = kept.desk().unproved().await;
    let mut rows = rows.map_err(|error| Failure::Broken(error.to_string()))?;
    rows.retain(|row| row.action.said.run.tenant == tenant);
    Ok(rows)
}

/// The last entry of a chain that is whole.
pub(super) async fn head(kept: &Kept, tenant: &str) -> Result<Option<Head>, Failure> {
    match check(kept, tenant, Vec::new()).await? {
        Ok(found) => Ok(found.head),
        Err(broken) => Err(Failure::Broken(format!(
            "the chain of `{tenant}` is broken, and is not anchored: {broken}"
        ))),
    }
}

async fn check(
    kept: &Kept,
    tenant: &str,
    anchors: Vec<Anchor>,
) -> Result<Result<Verified, Broken>, Failure> {
    let mut verifier = Verifier::new(tenant, anchors);
    loop {
        let after = verifier.next_seq().saturating_sub(1);
        let entries = page(kept, tenant, (after, PAGE)).await?;
        for entry in &entries {
            if let Err(broken) = verifier.see(entry) {
                return Ok(Err(broken));
            }
        }
        if entries.len() < PAGE {
            return Ok(verifier.finish());
        }
    }
}

/// The anchors in files, one on a line.
pub(super) fn anchors(files: &[PathBuf]) -> Result<Vec<Anchor>, Failure> {
    let mut anchors = Vec::new();
    for path in files {
        let shown = path.display();
        let wrong =
            |why: &dyn std::fmt::Display| Failure::Usage(format!("--anchor: {shown}: {why}"));
        let text = read_text(path).map_err(|error| wrong(&error))?;
        let before = anchors.len();
        let lines = text.lines().enumerate();
        for (n, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let anchor: Anchor = line
                .parse()
                .map_err(|error| wrong(&format_args!("line {}: {error}", n + 1)))?;
            anchors.push(anchor);
        }
        if anchors.len() == before {
            return Err(wrong(&"there is no anchor in it"));
        }
    }
    Ok(anchors)
}

fn in_json<'a>(tenant: &'a str, checked: &'a Result<Verified, Broken>) -> Found<'a> {
    let none = Verified::default();
    let (found, broken) = match checked {
        Ok(found) => (Some(found), None),
        Err(broken) => (None, Some(broken)),
    };
    let head = found.and_then(|found| found.head.as_ref());
    let number = |of: fn(&Verified) -> u64| of(found.unwrap_or(&none));
    Found {
        whole: broken.is_none(),
        tenant,
        entries: number(|found| found.entries),
        attempts: number(|found| found.attempts),
        details: number(|found| found.details),
        erased: number(|found| found.erased),
        anchored: number(|found| found.anchored),
        last_anchor_seq: found.and_then(|found| found.last_anchor.as_ref().map(|it| it.seq)),
        head_seq: head.map(|head| head.seq),
        head_hash: head.map(|head| head.hash.as_str()),
        broken_at: broken.map(|broken| broken.seq),
        why: broken.map(|broken| broken.link.to_string()),
        erased_untold: number(|found| found.erased_untold),
        unproved: Vec::new(),
        astray: Vec::new(),
    }
}

impl OneAstray {
    fn of(astray: &Astray) -> OneAstray {
        OneAstray {
            action: astray.action,
            why: astray.fault.to_string(),
        }
    }
}

fn in_words(tenant: &str, found: &Verified) -> String {
    let Some(head) = &found.head else {
        return printable(&format!("whole: the chain of `{tenant}` is empty"));
    };
    let mut text = format!(
        "whole: {}, {}, each of them signed; the last entry is {} ({})",
        match found.entries {
            1 => "1 entry".to_owned(),
            n => format!("{n} entries"),
        },
        count(found.attempts, "attempt"),
        head.seq,
        head.hash
    );
    if found.erased > 0 {
        let erased = count(found.erased, "detail");
        text.push_str(&format!("\n{erased} erased, which leaves the chain whole"));
    }
    if found.erased_untold > 0 {
        let untold = found.erased_untold;
        text.push_str(&format!(
            "\nCareful: no entry tells who erased {untold} of them: somebody took them away by hand"
        ));
    }
    text.push_str(&match &found.last_anchor {
        Some(anchor) => format!(
            "\n{} kept elsewhere fit, the newest of entry {}, {}; what comes after it could have been written anew",
            count(found.anchored, "anchor"),
            anchor.seq,
            time(anchor.at_ms)
        ),
        None => "\nno anchor was given: whether the end was cut off, or all of it written anew by the store's owner, \
                 is not seen (paraph audit anchor makes one)"
            .to_owned(),
    });
    printable(&text)
}
