//! A Postgres server for one test process: made from a template, on a port of its own, gone with its guard.
//!
//! Used by the tests that need a real server, in other crates by `#[path]`; it knows nothing of Paraph and
//! needs nothing but the standard library. A machine without Postgres skips those tests and says so, or
//! fails them where `PARAPH_REQUIRE_SERVICES=1`.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test uses a part of it, be it from a test crate or from inside one"
)]

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Write},
    net::TcpListener,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

/// How long a server may take to start or to stop before a test gives up.
const LONGEST: Duration = Duration::from_secs(60);

/// A running server, or one that was stopped and can be started again. Dropped, it is gone with its data;
/// so it is when the test process is killed.
pub struct Cluster {
    place: Place,
    data: PathBuf,
    port: u16,
    settings: Vec<String>,
    server: Mutex<Option<Server>>,
}

/// The programs, and whose they run as.
#[derive(Clone)]
struct Place {
    programs: PathBuf,
    owner: Option<Owner>,
}

/// Postgres does not run as root; a test that does lends it the user that Debian made for it.
#[derive(Clone, Copy)]
struct Owner {
    user: u32,
    group: u32,
}

/// The shell that watches over a server. It ends the server when its standard input closes, be it that
/// this process ended without a word.
struct Server {
    shell: Child,
    open: ChildStdin,
    pid: u32,
}

/// How a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It closes what is open, and writes everything down.
    Orderly,
    /// As if the machine lost its power, but that what was written is written.
    Abrupt,
}

impl Cluster {
    /// A server with `fsync` off, which is all that most tests need; nothing where there is no Postgres.
    pub fn start() -> Option<Cluster> {
        Cluster::with(&[
            "fsync=off",
            "synchronous_commit=off",
            "full_page_writes=off",
        ])
    }

    /// A server that writes to disk what it says it has written.
    pub fn durable() -> Option<Cluster> {
        Cluster::with(&["fsync=on", "synchronous_commit=on"])
    }

    /// A server with these settings, as `name=value`.
    pub fn with(settings: &[&str]) -> Option<Cluster> {
        let Some(place) = Place::find() else {
            let why = "no `initdb` in PATH or below /usr/lib/postgresql: install the package `postgresql`";
            assert!(
                std::env::var_os("PARAPH_REQUIRE_SERVICES").is_none_or(|v| v != "1"),
                "Postgres is required here: {why}"
            );
            eprintln!("SKIPPED, nothing was shown: {why}");
            return None;
        };
        let data = place.copy_of_template();
        let cluster = Cluster {
            place,
            data,
            port: free_port(),
            settings: settings.iter().map(|s| (*s).to_owned()).collect(),
            server: Mutex::new(None),
        };
        cluster.begin();
        Some(cluster)
    }

    /// The URL of its first database.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The URL of the database of this name, whether there is one or not.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Makes an empty database; says its URL.
    pub fn database(&self, name: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE \"{name}\""));
        self.url_of(name)
    }

    /// What `psql` answers to statements in a database: one line per row, `|` between columns.
    pub fn sql(&self, database: &str, statements: &str) -> String {
        finish(&mut self.psql(database, statements))
    }

    /// What `psql` says to statements that the server refuses.
    pub fn refusal(&self, database: &str, statements: &str) -> String {
        let output = self.psql(database, statements).output().unwrap();
        assert!(!output.status.success(), "it was done: {statements}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn psql(&self, database: &str, statements: &str) -> Command {
        let mut psql = self.place.command("psql");
        psql.args([
            "-XqAt",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            "127.0.0.1",
            "-U",
            "postgres",
        ])
        .args([
            "-p",
            &self.port.to_string(),
            "-d",
            database,
            "-c",
            statements,
        ]);
        psql
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder with its data.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Makes a certificate that vouches for itself, with its key: `NAME.crt` and `NAME.key` in the server's folder.
    /// Says where the certificate is. Needs `openssl`, which Debian installs with Postgres.
    pub fn certificate(&self, name: &str, host: &str) -> PathBuf {
        let [config, key, certificate] =
            ["cnf", "key", "crt"].map(|kind| self.data.join(format!("{name}.{kind}")));
        let text = format!(
            "[req]\ndistinguished_name=dn\nx509_extensions=v3\nprompt=no\n[dn]\nCN={host}\n\
             [v3]\nsubjectAltName=DNS:{host}\nbasicConstraints=CA:FALSE\n"
        );
        fs::write(&config, text).unwrap();
        // The server takes no key that others can read, or that belongs to somebody else.
        let mut openssl = self.place.command("openssl");
        openssl
            .args(["req", "-x509", "-nodes", "-days", "2", "-newkey", "ec"])
            .args(["-pkeyopt", "ec_paramgen_curve:prime256v1", "-config"])
            .arg(config)
            .arg("-keyout")
            .arg(key)
            .arg("-out")
            .arg(&certificate);
        finish(&mut openssl);
        certificate
    }

    /// Stops it, and waits until it has stopped.
    pub fn stop(&self, how: Stop) {
        let Some(mut server) = self.server().take() else {
            return;
        };
        let signal = match how {
            Stop::Orderly => "INT",
            Stop::Abrupt => "QUIT",
        };
        // Both may be gone already.
        let _ = server.open.write_all(b"stop\n");
        let mut control = self.place.command("pg_ctl");
        control.args(["kill", signal, &server.pid.to_string()]);
        let _ = control.output();
        let began = Instant::now();
        while server.shell.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < LONGEST, "Postgres does not stop");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Starts it again after [`Cluster::stop`], on the same port with the same data.
    pub fn begin(&self) {
        let mut server = self.server();
        assert!(server.is_none(), "Postgres runs already");
        *server = Some(self.launch());
    }

    /// Stops it, waits, and starts it again.
    pub fn restart(&self, how: Stop, down: Duration) {
        self.stop(how);
        std::thread::sleep(down);
        self.begin();
    }

    fn server(&self) -> MutexGuard<'_, Option<Server>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn launch(&self) -> Server {
        // A pid file of an earlier start would be read as this one's.
        let _ = fs::remove_file(self.data.join("postmaster.pid"));
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.data.with_extension("log"))
            .unwrap();
        // `read` gets a word when the server is to be stopped, and none when this process is no more.
        let watch = r#"exec 3<&0
"$@" <&- 3<&- & server=$!
(read -r word <&3 || { kill -QUIT $server; sleep 1; rm -rf "$3" "$3.log"; }) &
exec 3<&-; wait $server"#;
        let mut command = self.place.command("/bin/sh");
        command
            .args(["-c", watch, "postgres"])
            .arg(self.place.programs.join("postgres"))
            .arg("-D")
            .arg(&self.data)
            .args(["-p", &self.port.to_string()]);
        for setting in self.settings.iter().map(String::as_str).chain([
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "max_connections=200",
            "shared_buffers=32MB",
            "log_min_messages=warning",
        ]) {
            command.args(["-c", setting]);
        }
        let mut shell = command
            .stdin(Stdio::piped())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let open = shell.stdin.take().unwrap();
        let began = Instant::now();
        loop {
            if let Some(pid) = ready(&self.data) {
                break Server { shell, open, pid };
            }
            let ended = shell.try_wait().unwrap();
            assert!(
                ended.is_none() && began.elapsed() < LONGEST,
                "Postgres did not start ({ended:?}): {}",
                fs::read_to_string(self.data.with_extension("log")).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop(Stop::Abrupt);
        let _ = fs::remove_dir_all(&self.data);
        let _ = fs::remove_file(self.data.with_extension("log"));
    }
}

/// The server's pid, once it takes connections: the last line of its pid file says so.
fn ready(data: &Path) -> Option<u32> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let mut lines = text.lines();
    let pid = lines.next()?.trim().parse().ok()?;
    (lines.nth(6)?.trim() == "ready").then_some(pid)
}

impl Place {
    fn find() -> Option<Place> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let named = std::env::split_paths(&path).map(|folder| folder.join("initdb"));
        let mut installed: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
            .into_iter()
            .flatten()
            .flatten()
            .map(|version| version.path().join("bin/initdb"))
            .collect();
        installed.sort();
        installed.reverse();
        // A link in PATH stands for the folder that it leads to: the server's program is there only.
        let initdb = named
            .chain(installed)
            .filter_map(|initdb| initdb.canonicalize().ok())
            .find(|initdb| initdb.with_file_name("postgres").is_file())?;
        let programs = initdb.parent()?.to_owned();
        let owner = if own_user()? == 0 {
            Some(user_postgres()?)
        } else {
            None
        };
        Some(Place { programs, owner })
    }

    /// One of the server's programs or of the system's, to be run as whoever the server runs as.
    fn command(&self, program: &str) -> Command {
        let own = self.programs.join(program);
        let mut command = Command::new(if own.is_file() {
            &*own
        } else {
            Path::new(program)
        });
        command.current_dir("/").stdin(Stdio::null());
        if let Some(owner) = self.owner {
            command.uid(owner.user).gid(owner.group);
        }
        command
    }

    /// A folder that only this process uses, with the data of a fresh server.
    fn copy_of_template(&self) -> PathBuf {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let home = self.home();
        let name = format!(
            "cluster-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let data = home.join(name);
        let _ = fs::remove_dir_all(&data);
        let template = self.template(&home);
        let mut copy = self.command("/bin/cp");
        finish(copy.arg("-R").arg(template).arg(&data));
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
        data
    }

    /// Data of a server that never ran; made by the first who asks, while the others wait.
    fn template(&self, home: &Path) -> PathBuf {
        let lock = File::create(home.join("lock")).unwrap();
        lock.lock().unwrap();
        let version = finish(self.command("initdb").arg("--version"));
        let version = version.split_whitespace().nth(2).unwrap_or("unknown");
        let template = home.join(format!("template-{version}"));
        if !template.exists() {
            let half = home.join("template-half");
            let _ = fs::remove_dir_all(&half);
            let mut initdb = self.command("initdb");
            initdb
                .args(["--username=postgres", "--auth=trust", "--no-sync"])
                .args(["--encoding=UTF8", "--locale=C", "-D"])
                .arg(&half);
            finish(&mut initdb);
            fs::rename(&half, &template).unwrap();
        }
        template
    }

    /// A folder that the server's user can write to: with the other files of the build if it gets there,
    /// else among those that nobody keeps.
    fn home(&self) -> PathBuf {
        // Tests inside a crate are not told where the build is.
        let beside =
            option_env!("CARGO_TARGET_TMPDIR").map(|build| Path::new(build).join("postgres"));
        if let Some(beside) = beside.filter(|beside| self.reaches(beside)) {
            return beside;
        }
        let elsewhere = std::env::temp_dir().join("paraph-postgres");
        assert!(
            self.reaches(&elsewhere),
            "{} cannot be written to by the user that runs Postgres",
            elsewhere.display()
        );
        elsewhere
    }

    fn reaches(&self, folder: &Path) -> bool {
        fs::create_dir_all(folder).unwrap();
        if let Some(owner) = self.owner {
            std::os::unix::fs::chown(folder, Some(owner.user), Some(owner.group)).unwrap();
        }
        let mut test = self.command("/bin/sh");
        test.args(["-c", "test -w \"$1\" && test -x \"$1\"", "test"])
            .arg(folder);
        test.status().unwrap().success()
    }
}

/// Runs a program to its end; its output. What went wrong is said in its own words.
fn finish(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e: io::Error| {
        panic!("{}: {e}", command.get_program().display());
    });
    assert!(
        output.status.success(),
        "{} {:?}: {}",
        command.get_program().display(),
        command.get_args().collect::<Vec<&OsStr>>(),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

/// Two processes may be told the same port between this and the server's start; then one of them says so.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn own_user() -> Option<u32> {
    let output = Command::new("id").arg("-u").output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

fn user_postgres() -> Option<Owner> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        match fields[..] {
            ["postgres", _, user, group, ..] => Some(Owner {
                user: user.parse().ok()?,
                group: group.parse().ok()?,
            }),
            _ => None,
        }
    })
}
