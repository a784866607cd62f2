//! Which request is which, and what it is answered: statuses, pages, tags and limits as GitHub has them.

use super::{Ask, Reply, World, find, render};
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The longest comment, in characters.
const MAX_COMMENT: usize = 65_536;

impl World {
    /// Answers a request.
    pub fn answer(&mut self, ask: &Ask<'_>) -> Reply {
        let (path, query) = ask.target.split_once('?').unwrap_or((ask.target, ""));
        let path = path.trim_matches('/');
        let parts: Vec<&str> = path.split('/').collect();
        let reply = match (ask.method, &parts[..]) {
            ("GET", ["user"]) => self.signed_in(ask),
            (_, ["repos", owner, name, rest @ ..]) => match self.place(owner, name) {
                Some(place) => self.in_repository(ask, (place, query), rest),
                None => self.moved(owner, name, rest, query),
            },
            (_, ["repositories", id, rest @ ..]) => {
                let id: Option<u64> = id.parse().ok();
                let place = self
                    .repositories()
                    .position(|repository| repository["id"].as_u64() == id);
                match place {
                    Some(place) => self.in_repository(ask, (place, query), rest),
                    None => error(404, "Not Found"),
                }
            }
            _ => error(404, "Not Found"),
        };
        tagged(reply, ask)
    }

    fn renderer(&self) -> render::Renderer<'_> {
        render::Renderer::new(&self.base, &self.all["users"])
    }

    fn signed_in(&self, ask: &Ask<'_>) -> Reply {
        match ask.viewer.map(|login| self.user(login)) {
            Some(user) if user.is_object() => ok(self.renderer().private_user(&user)),
            _ => error(401, "Requires authentication"),
        }
    }

    /// A repository that has another name now.
    fn moved(&self, owner: &str, name: &str, rest: &[&str], query: &str) -> Reply {
        let old = format!("{owner}/{name}").to_ascii_lowercase();
        match self.all["moved"][&old].as_u64() {
            Some(id) => self.redirect(&format!("repositories/{id}"), rest, query),
            None => error(404, "Not Found"),
        }
    }

    fn redirect(&self, to: &str, rest: &[&str], query: &str) -> Reply {
        let mut to = format!("{}/{to}", self.base);
        for part in rest {
            to = format!("{to}/{part}");
        }
        if !query.is_empty() {
            to = format!("{to}?{query}");
        }
        let body = json!({
            "message": "Moved Permanently", "url": to,
            "documentation_url": "https://docs.github.com/rest",
        });
        Reply {
            status: 301,
            headers: vec![("Location".to_owned(), to)],
            body,
        }
    }

    fn in_repository(&mut self, ask: &Ask<'_>, at: (usize, &str), rest: &[&str]) -> Reply {
        let (place, query) = at;
        let repository = self.all["repositories"][place].clone();
        let render = self.renderer();
        match (ask.method, rest) {
            ("GET", []) => ok(render.repository(&repository, ask.viewer)),
            ("GET", ["labels"]) => {
                let labels = list(&repository["labels"]);
                let labels = labels.iter().map(|label| render.label(&repository, label));
                self.paged(ask, labels.collect())
            }
            ("GET", ["contents", file @ ..]) => {
                let path = file.join("/");
                match repository["files"][&path].as_str() {
                    Some(text) => ok(render.file(&repository, &path, text)),
                    None => error(404, "Not Found"),
                }
            }
            ("GET", ["pulls", number]) => match numbered(&repository, "pulls", number) {
                Some(pull) => ok(render.pull(&repository, pull)),
                None => error(404, "Not Found"),
            },
            ("GET", ["commits", sha, kind]) => self.commit(ask, &repository, (sha, kind)),
            (_, ["issues", ..]) if repository["has_issues"] == json!(false) => {
                error(410, "Issues are disabled for this repo")
            }
            ("GET", ["issues"]) => self.issues(ask, &repository, query),
            ("PATCH", ["issues", "comments", id]) => self.edit(ask, &repository, id),
            (_, ["issues", number, rest @ ..]) => self.in_issue(ask, &repository, (number, rest)),
            _ => error(404, "Not Found"),
        }
    }

    fn issues(&self, ask: &Ask<'_>, repository: &Value, query: &str) -> Reply {
        let render = self.renderer();
        let wanted = parameter(query, "state").unwrap_or("open".to_owned());
        let since = parameter(query, "since");
        let mut issues = list(&repository["issues"]);
        issues.extend(list(&repository["pulls"]).into_iter().map(|mut pull| {
            pull["is_pull"] = json!(true);
            pull
        }));
        issues.retain(|issue| {
            let state = wanted == "all" || issue["state"] == *wanted;
            let updated = issue["updated_at"].as_str().unwrap_or_default();
            state && since.as_deref().is_none_or(|since| updated >= since)
        });
        issues.sort_by(|one, other| {
            let key = |issue: &Value| issue["updated_at"].as_str().map(str::to_owned);
            key(one).cmp(&key(other))
        });
        if parameter(query, "direction").as_deref() != Some("asc") {
            issues.reverse();
        }
        let labels = parameter(query, "labels");
        issues.retain(|issue| {
            labels
                .as_deref()
                .is_none_or(|label| list(&issue["labels"]).contains(&json!(label)))
        });
        let issues = issues.iter().map(|issue| render.issue(repository, issue));
        self.paged(ask, issues.collect())
    }

    fn in_issue(&mut self, ask: &Ask<'_>, repository: &Value, at: (&str, &[&str])) -> Reply {
        let (number, rest) = at;
        let render = self.renderer();
        if let Some(to) = repository["transferred"][number].as_str() {
            return match (ask.method, rest) {
                ("GET", []) => self.redirect(to, &[], ""),
                _ => error(404, "Not Found"),
            };
        }
        let pull = || {
            let mut pull = numbered(repository, "pulls", number)?.clone();
            pull["is_pull"] = json!(true);
            Some(pull)
        };
        let Some(issue) = numbered(repository, "issues", number)
            .cloned()
            .or_else(pull)
        else {
            return error(404, "Not Found");
        };
        if issue["deleted"] == json!(true) {
            return error(410, "This issue was deleted");
        }
        match (ask.method, rest) {
            ("GET", []) => ok(render.issue(repository, &issue)),
            ("GET", ["comments"]) => {
                let comments = list(&issue["comments"]);
                let comments = comments
                    .iter()
                    .map(|comment| render.comment(repository, &issue, comment));
                self.paged(ask, comments.collect())
            }
            ("GET", ["timeline"]) => {
                let events = render.timeline(repository, &issue);
                self.paged(ask, events)
            }
            ("POST", ["comments"]) => self.comment(ask, repository, &issue),
            ("POST", ["labels"]) => self.label(ask, repository, &issue),
            _ => error(404, "Not Found"),
        }
    }

    fn comment(&mut self, ask: &Ask<'_>, repository: &Value, issue: &Value) -> Reply {
        let text = match self.may_write(ask, repository, issue) {
            Ok(text) => text,
            Err(reply) => return reply,
        };
        let id = self.fresh();
        let post = json!({
            "kind": "comment", "repository": repository["id"], "number": issue["number"], "id": id,
            "user": ask.viewer, "body": text, "created_at": ask.now,
        });
        self.write(post);
        self.shown(repository, id, 201)
    }

    fn edit(&mut self, ask: &Ask<'_>, repository: &Value, id: &str) -> Reply {
        let id: Value = id.parse::<u64>().map_or(Value::Null, Value::from);
        let issues = list(&repository["issues"]);
        let found = issues.iter().find_map(|issue| {
            let comment = find(issue, "comments", "id", &id)?;
            Some((issue, comment))
        });
        let Some((issue, comment)) = found else {
            return error(404, "Not Found");
        };
        let text = match self.may_write(ask, repository, issue) {
            Ok(text) => text,
            Err(reply) => return reply,
        };
        if comment["user"].as_str() != ask.viewer {
            return error(403, "Must have admin rights to Repository.");
        }
        let post = json!({
            "kind": "edit", "repository": repository["id"], "id": id, "user": ask.viewer,
            "body": text, "created_at": ask.now,
        });
        self.write(post);
        self.shown(repository, id.as_u64().unwrap_or_default(), 200)
    }

    /// A comment as it is now.
    fn shown(&self, repository: &Value, id: u64, status: u16) -> Reply {
        let render = self.renderer();
        let mut repositories = self.repositories();
        let now = repositories.find(|now| now["id"] == repository["id"]);
        let issues = now.map(|now| list(&now["issues"])).unwrap_or_default();
        for issue in &issues {
            if let Some(comment) = find(issue, "comments", "id", &json!(id)) {
                let body = render.comment(repository, issue, comment);
                let headers = vec![("Location".to_owned(), render::text(&body["url"]))];
                return Reply {
                    status,
                    headers,
                    body,
                };
            }
        }
        error(404, "Not Found")
    }

    /// The text that was sent, if whoever sent it may write here.
    fn may_write(&self, ask: &Ask<'_>, repository: &Value, issue: &Value) -> Result<String, Reply> {
        let Some(login) = ask.viewer else {
            return Err(error(401, "Requires authentication"));
        };
        if self.user(login).is_null() {
            return Err(error(401, "Bad credentials"));
        }
        if repository["archived"] == json!(true) {
            return Err(error(403, "Repository was archived so is read-only."));
        }
        if issue["locked"] == json!(true) && repository["permissions"]["push"] != json!(true) {
            return Err(error(
                403,
                "Unable to create comment because issue is locked.",
            ));
        }
        let body: Value = serde_json::from_slice(ask.body).unwrap_or_default();
        let Some(text) = body["body"].as_str().filter(|text| !text.trim().is_empty()) else {
            return Err(invalid("body can't be blank"));
        };
        match text.chars().count() > MAX_COMMENT {
            true => Err(invalid("body is too long (maximum is 65536 characters)")),
            false => Ok(text.to_owned()),
        }
    }

    fn label(&mut self, ask: &Ask<'_>, repository: &Value, issue: &Value) -> Reply {
        if ask.viewer.is_none() {
            return error(401, "Requires authentication");
        }
        if repository["permissions"]["triage"] != json!(true) {
            return error(403, "Resource not accessible by personal access token");
        }
        let body: Value = serde_json::from_slice(ask.body).unwrap_or_default();
        let labels = list(&body["labels"]);
        if labels.is_empty() || !labels.iter().all(Value::is_string) {
            return invalid("labels must be a list of names");
        }
        let number = issue["number"].clone();
        let post = json!({
            "kind": "labels", "repository": repository["id"], "number": number, "user": ask.viewer,
            "labels": labels, "created_at": ask.now,
        });
        self.write(post);
        let render = self.renderer();
        let mut repositories = self.repositories();
        let now = repositories.find(|now| now["id"] == repository["id"]);
        let issue = now.and_then(|now| find(now, "issues", "number", &number));
        let labels = issue
            .map(|issue| list(&issue["labels"]))
            .unwrap_or_default();
        let labels = labels.iter().map(|label| render.label(repository, label));
        ok(Value::Array(labels.collect()))
    }

    fn commit(&self, ask: &Ask<'_>, repository: &Value, at: (&str, &str)) -> Reply {
        let (sha, kind) = at;
        let render = self.renderer();
        let of_pull = find(repository, "pulls", "sha", &json!(sha));
        let Some(commit) = of_pull.or_else(|| find(repository, "commits", "sha", &json!(sha)))
        else {
            return match kind {
                "pulls" => error(422, &format!("No commit found for SHA: {sha}")),
                _ => error(404, "Not Found"),
            };
        };
        let (key, name) = match kind {
            "check-runs" => ("checks", "check_runs"),
            "status" => ("statuses", "statuses"),
            "pulls" => {
                let pulls = of_pull.map(|pull| render.pull(repository, pull));
                return ok(Value::Array(pulls.into_iter().collect()));
            }
            _ => return error(404, "Not Found"),
        };
        let all = list(&commit[key]);
        let total = all.len();
        let rendered = all.iter().enumerate().map(|(at, entry)| match key {
            "checks" => render.check(repository, sha, (at, entry)),
            _ => render.status(repository, sha, (at, entry)),
        });
        let mut reply = self.paged(ask, rendered.collect());
        reply.body = match key {
            "checks" => json!({"total_count": total, name: reply.body}),
            _ => render.combined(repository, sha, (total, reply.body)),
        };
        reply
    }

    /// One page of a list, with the address of the next.
    fn paged(&self, ask: &Ask<'_>, all: Vec<Value>) -> Reply {
        let (path, query) = ask.target.split_once('?').unwrap_or((ask.target, ""));
        let number = |name: &str| parameter(query, name)?.parse::<usize>().ok();
        let size = number("per_page").unwrap_or(30).clamp(1, 100);
        let page = number("page").unwrap_or(1).max(1);
        let last = all.len().div_ceil(size).max(1);
        let skipped = (page - 1).saturating_mul(size);
        let others = query
            .split('&')
            .filter(|pair| !pair.is_empty() && !pair.starts_with("page="));
        let others: Vec<&str> = others.collect();
        let address = |page: usize| {
            let mut query = others.clone();
            let number = format!("page={page}");
            query.push(&number);
            format!("<{}{path}?{}>", self.base, query.join("&"))
        };
        let mut links = Vec::new();
        if page < last {
            links.push(format!("{}; rel=\"next\"", address(page + 1)));
            links.push(format!("{}; rel=\"last\"", address(last)));
        }
        if page > 1 {
            links.push(format!("{}; rel=\"first\"", address(1)));
            links.push(format!("{}; rel=\"prev\"", address(page - 1)));
        }
        let mut reply = ok(Value::Array(
            all.into_iter().skip(skipped).take(size).collect(),
        ));
        if !links.is_empty() {
            reply.headers.push(("Link".to_owned(), links.join(", ")));
        }
        reply
    }
}

/// With its tag; or without a body, if whoever asks has seen it.
fn tagged(mut reply: Reply, ask: &Ask<'_>) -> Reply {
    if ask.method != "GET" || reply.status != 200 {
        return reply;
    }
    let mut hasher = DefaultHasher::new();
    reply.body.to_string().hash(&mut hasher);
    reply.headers.hash(&mut hasher);
    let etag = format!("W/\"{:016x}\"", hasher.finish());
    if ask.etag == Some(&etag) {
        reply.status = 304;
        reply.body = Value::Null;
    }
    reply.headers.push(("ETag".to_owned(), etag));
    reply
}

fn numbered<'v>(repository: &'v Value, list: &str, number: &str) -> Option<&'v Value> {
    find(
        repository,
        list,
        "number",
        &json!(number.parse::<u64>().ok()?),
    )
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// A parameter of a query, of characters that need no decoding but colons and spaces.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(own, _)| *own == name)?;
    Some(
        value
            .replace("%3A", ":")
            .replace("%20", " ")
            .replace('+', " "),
    )
}

fn ok(body: Value) -> Reply {
    Reply {
        status: 200,
        headers: Vec::new(),
        body,
    }
}

fn error(status: u16, message: &str) -> Reply {
    Reply {
        status,
        headers: Vec::new(),
        body: json!({
            "message": message, "documentation_url": "https://docs.github.com/rest",
            "status": status.to_string(),
        }),
    }
}

fn invalid(message: &str) -> Reply {
    let mut reply = error(422, "Validation Failed");
    reply.body["errors"] = json!([message]);
    reply
}
