//! What `paraph doctor` says of effects: what waits for people, which kill switches are on, and whether the store is
//! somewhere that outlives this machine's next restart.

use super::{Check, Verdict};
use crate::anchors::Anchors;
use crate::cells::count;
use crate::config::Config;
use crate::failure::Failure;
use crate::stores::Kept;
use std::path::Path;

/// All that is worth knowing about a store that is there.
pub(super) fn checks(config: &Config) -> Vec<Check> {
    let Ok(found) = crate::stores::address(config) else {
        // The check of the store itself says so.
        return Vec::new();
    };
    let file = crate::stores::file_of(&found.text);
    let mut checks = vec![seal(config), anchors(config)];
    if let Some(kind) = file.as_deref().and_then(fleeting) {
        let shown = crate::stores::shown(&found.text);
        let detail = format!(
            "{shown} is on {kind}: what waits for people, and what was done, is gone with it; use a disk or postgres://"
        );
        checks.push(Check::new("store", Verdict::Note, detail));
    }
    if found.text == "memory:" {
        let detail = "memory: dies with each process; agents that change something refuse it";
        checks.push(Check::new("store", Verdict::Note, detail));
    } else if file.is_none_or(|file| file.exists()) {
        match look(config) {
            Ok(more) => checks.extend(more),
            Err(failure) => checks.push(Check::of("approvals", Err(failure))),
        }
    }
    checks
}

/// Whether approvals are proved by a key that is not in the store.
fn seal(config: &Config) -> Check {
    const CHECK: &str = "seal key";
    match (crate::stores::seal(config), config.get("seal_key")) {
        (Err(failure), _) | (_, Err(failure)) => Check::of(CHECK, Err(failure)),
        (Ok(Some(_)), Ok(Some(found))) => {
            let detail = format!("approvals are proved by the key of {}", found.source);
            Check::new(CHECK, Verdict::Ok, detail)
        }
        _ => {
            let detail = "none: whoever can write to the store can write approvals (PARAPH_SEAL_KEY, 64 hexadecimal \
                          digits)";
            Check::new(CHECK, Verdict::Note, detail)
        }
    }
}

/// Whether anchors of the audit are kept elsewhere.
fn anchors(config: &Config) -> Check {
    const CHECK: &str = "audit anchors";
    match Anchors::of(config) {
        Err(failure) => Check::of(CHECK, Err(failure)),
        Ok(Some(anchors)) => {
            let (place, every) = (anchors.shown(), anchors.every);
            let detail = format!("kept in {place}, after {every} entries of the audit each time");
            Check::new(CHECK, Verdict::Ok, detail)
        }
        Ok(None) => {
            let detail = "none are kept by themselves: without one nobody sees whether the end of the audit was cut off \
                          (PARAPH_AUDIT_ANCHOR)";
            Check::new(CHECK, Verdict::Note, detail)
        }
    }
}

fn look(config: &Config) -> Result<Vec<Check>, Failure> {
    crate::commands::block_on(async {
        let Ok(kept) = Kept::open(config).await else {
            // The check of the store itself says why.
            return Ok(Vec::new());
        };
        let desk = kept.desk();
        let broken = |error: paraph_gateway::ApprovalError| Failure::Broken(error.to_string());
        let waiting = desk.waiting().await.map_err(broken)?.len();
        let kills = desk.kills().await.map_err(broken)?;
        let waits = match waiting {
            0 => Check::new("approvals", Verdict::Ok, "nothing waits for a person"),
            n => {
                let n = count(n as u64, "action");
                let detail = format!("{n} waiting for people: paraph approvals list");
                Check::new("approvals", Verdict::Note, detail)
            }
        };
        let mut checks = vec![waits];
        for kill in &kills {
            let detail = format!("on for {} by {}: {}", kill.scope, kill.by, kill.reason);
            checks.push(Check::new("kill switch", Verdict::Note, detail));
        }
        if kills.is_empty() {
            checks.push(Check::new("kill switch", Verdict::Ok, "none is on"));
        }
        let forged = desk.unproved().await.map_err(broken)?;
        for row in &forged {
            let detail = format!(
                "action {} is {} without approvals of this desk's key: nothing starts it (paraph audit verify)",
                row.id(),
                row.state
            );
            checks.push(Check::new("seal key", Verdict::Wrong, detail));
        }
        Ok(checks)
    })
}

/// The kind of a file's file system, if that does not outlive a restart or a container. As far as the system says.
fn fleeting(file: &Path) -> Option<String> {
    let mounts = crate::config::read_text(Path::new("/proc/self/mountinfo")).ok()?;
    let folder = file.ancestors().skip(1).find(|folder| folder.is_dir());
    let folder = match folder {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let place = std::fs::canonicalize(folder).ok()?;
    let kind = kind_of(&mounts, &place)?;
    matches!(kind, "tmpfs" | "ramfs" | "overlay").then(|| match kind {
        "overlay" => "a container's own layer (overlay)".to_owned(),
        kind => format!("a file system in memory ({kind})"),
    })
}

/// The kind of the file system that a place is on: that of the innermost mount above it, the last one if several
/// were put there.
fn kind_of<'m>(mounts: &'m str, place: &Path) -> Option<&'m str> {
    let above = mounts.lines().filter_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let point = mount.split(' ').nth(4)?.replace("\\040", " ");
        let depth = Path::new(&point).components().count();
        place
            .starts_with(&point)
            .then_some((depth, kind.split(' ').next()?))
    });
    let innermost = above.max_by_key(|(depth, _)| *depth);
    innermost.map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_on_the_innermost_file_system_above_it() {
        let mounts = "22 1 0:20 / / rw - overlay overlay rw\n\
                      23 22 0:21 / /mnt rw,nosuid - tmpfs tmpfs rw\n\
                      24 22 8:1 / /home/my\\040data rw shared:1 - ext4 /dev/sda1 rw\n\
                      25 22 8:2 / /data rw - ext4 /dev/sdb1 rw\n\
                      26 22 0:22 / /data rw - tmpfs tmpfs rw\n\
                      broken";
        let table = [
            ("/", Some("overlay")),
            ("/mnt/x", Some("tmpfs")),
            ("/mntx", Some("overlay")),
            ("/home/my data/a", Some("ext4")),
            ("/data", Some("tmpfs")),
        ];
        for (place, kind) in table {
            assert_eq!(kind_of(mounts, Path::new(place)), kind, "{place}");
        }
        assert_eq!(kind_of("", Path::new("/")), None);
    }
}
