//! Who decides on this machine: the local user, as the system knows them. Nobody makes sure that it is they.

use crate::config::Environment;

/// The longest name that is taken, in characters.
const LONGEST: usize = 64;

/// The name of the user who runs this process. It is written down as unverified.
pub(crate) fn local(environment: &Environment) -> String {
    let name = by_system().or_else(|| {
        let named = ["USER", "USERNAME"].map(|variable| environment.real(variable));
        named.into_iter().flatten().find_map(plain)
    });
    name.unwrap_or_else(nameless)
}

/// The name of the process's user in the system's list. A variable can say anything.
#[cfg(unix)]
fn by_system() -> Option<String> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let list = crate::config::read_text(std::path::Path::new("/etc/passwd")).ok()?;
    listed(&list, &uid)
}

#[cfg(not(unix))]
fn by_system() -> Option<String> {
    None
}

/// The name of a user in a list of lines `name:x:uid:…`.
#[cfg(unix)]
fn listed(list: &str, uid: &str) -> Option<String> {
    list.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| plain(name))?
    })
}

#[cfg(unix)]
fn nameless() -> String {
    format!("uid-{}", rustix::process::getuid().as_raw())
}

#[cfg(not(unix))]
fn nameless() -> String {
    "somebody".to_owned()
}

/// A name that can be shown as it is.
fn plain(name: &str) -> Option<String> {
    let plain = crate::terminal::printable_line(name.trim(), LONGEST);
    (!plain.is_empty()).then_some(plain)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_number() {
        let list =
            "root:x:0:0:root:/root:/bin/sh\nbroken\nann:x:1000:1000:Ann,,,:/home/ann:/bin/sh\n";
        let table = [
            ("1000", Some("ann")),
            ("0", Some("root")),
            ("100", None),
            ("x", None),
        ];
        for (uid, name) in table {
            assert_eq!(listed(list, uid).as_deref(), name, "{uid}");
        }
    }
}
