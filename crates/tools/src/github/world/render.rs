//! GitHub's objects, with the fields that its description of the interface demands, out of the short description that
//! a world is made from.

use serde_json::{Map, Value, json};

/// A moment for what has none of its own.
const LONG_AGO: &str = "2026-01-05T08:00:00Z";

/// Makes objects whose addresses begin here.
pub(super) struct Renderer<'b> {
    base: &'b str,
    users: &'b Value,
}

/// A text, or nothing.
pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The first that is not null.
fn or(value: &Value, other: impl Into<Value>) -> Value {
    match value.is_null() {
        true => other.into(),
        false => value.clone(),
    }
}

fn joined(mut one: Value, other: Value) -> Value {
    if let (Some(one), Value::Object(other)) = (one.as_object_mut(), other) {
        one.extend(other);
    }
    one
}

fn number_of(name: &str) -> u64 {
    name.bytes()
        .fold(7_000, |sum, byte| (sum * 31 + u64::from(byte)) % 1_000_003)
}

impl<'b> Renderer<'b> {
    pub(super) fn new(base: &'b str, users: &'b Value) -> Renderer<'b> {
        Renderer { base, users }
    }

    /// Where the pages are: beside the interface, or at GitHub for a server that stands in for it on this machine.
    fn site(&self) -> String {
        match self.base.strip_prefix("https://api.") {
            Some(host) => format!("https://{host}"),
            None => "https://github.com".to_owned(),
        }
    }

    /// The number of a user: as it was described, or made of the name.
    fn id(&self, login: &str) -> u64 {
        let mut users = self.users.as_array().into_iter().flatten();
        let known = users.find(|user| user["login"] == *login);
        known
            .and_then(|user| user["id"].as_u64())
            .unwrap_or_else(|| number_of(login))
    }

    /// A user by login; a deleted one is null.
    fn user(&self, login: &Value) -> Value {
        let Some(login) = login.as_str() else {
            return Value::Null;
        };
        self.user_with(login, self.id(login))
    }

    fn user_with(&self, login: &str, id: u64) -> Value {
        let of = format!("{}/users/{login}", self.base);
        json!({
            "login": login, "id": id, "node_id": format!("U_{id}"), "gravatar_id": "", "type": "User",
            "avatar_url": format!("https://avatars.githubusercontent.com/u/{id}"),
            "url": of, "html_url": format!("{}/{login}", self.site()), "site_admin": false,
            "followers_url": format!("{of}/followers"), "following_url": format!("{of}/following{{/other_user}}"),
            "gists_url": format!("{of}/gists{{/gist_id}}"), "starred_url": format!("{of}/starred{{/owner}}{{/repo}}"),
            "subscriptions_url": format!("{of}/subscriptions"), "organizations_url": format!("{of}/orgs"),
            "repos_url": format!("{of}/repos"), "events_url": format!("{of}/events{{/privacy}}"),
            "received_events_url": format!("{of}/received_events"),
        })
    }

    /// The user who asks.
    pub(super) fn private_user(&self, user: &Value) -> Value {
        let login = text(&user["login"]);
        let more = json!({
            "bio": null, "blog": "", "company": null, "email": null, "followers": 0, "following": 0,
            "hireable": null, "location": null, "name": login, "public_gists": 0, "public_repos": 1,
            "created_at": LONG_AGO, "updated_at": LONG_AGO, "collaborators": 0, "disk_usage": 0,
            "owned_private_repos": 0, "private_gists": 0, "total_private_repos": 0,
            "two_factor_authentication": true, "user_view_type": "private",
        });
        joined(self.user_with(&login, self.id(&login)), more)
    }

    fn of(&self, repository: &Value) -> String {
        format!("{}/repos/{}", self.base, name(repository))
    }

    /// A repository.
    pub(super) fn repository(&self, repository: &Value, viewer: Option<&str>) -> Value {
        let counts = [
            "forks",
            "forks_count",
            "open_issues",
            "open_issues_count",
            "size",
            "stargazers_count",
            "watchers",
            "watchers_count",
            "network_count",
            "subscribers_count",
        ];
        let counts: Map<String, Value> = counts
            .map(|key| (key.to_owned(), json!(0)))
            .into_iter()
            .collect();
        let has = |key: &str, otherwise: bool| or(&repository[key], otherwise);
        let more = json!({
            "clone_url": format!("{}/{}.git", self.site(), name(repository)),
            "git_url": format!("git://github.com/{}.git", name(repository)),
            "ssh_url": format!("git@github.com:{}.git", name(repository)),
            "svn_url": format!("{}/{}", self.site(), name(repository)),
            "default_branch": "main", "has_issues": has("has_issues", true), "has_projects": false,
            "has_wiki": false, "has_downloads": true, "has_pages": false, "has_discussions": false, "homepage": null,
            "language": "Rust", "archived": has("archived", false), "disabled": false, "mirror_url": null,
            "license": null, "pushed_at": LONG_AGO, "created_at": LONG_AGO, "updated_at": LONG_AGO,
        });
        let mut whole = joined(
            joined(self.minimal(repository), more),
            Value::Object(counts),
        );
        if viewer.is_some() {
            let may = |key: &str| repository["permissions"][key] == json!(true);
            whole["permissions"] = json!({
                "admin": may("admin"), "maintain": may("maintain"), "push": may("push"),
                "triage": may("triage"), "pull": true,
            });
        }
        whole
    }

    fn minimal(&self, repository: &Value) -> Value {
        let of = self.of(repository);
        const PLACES: [(&str, &str); 38] = [
            ("archive_url", "/{archive_format}{/ref}"),
            ("assignees_url", "/assignees{/user}"),
            ("blobs_url", "/git/blobs{/sha}"),
            ("branches_url", "/branches{/branch}"),
            ("collaborators_url", "/collaborators{/collaborator}"),
            ("comments_url", "/comments{/number}"),
            ("commits_url", "/commits{/sha}"),
            ("compare_url", "/compare/{base}...{head}"),
            ("contents_url", "/contents/{+path}"),
            ("contributors_url", "/contributors"),
            ("deployments_url", "/deployments"),
            ("downloads_url", "/downloads"),
            ("events_url", "/events"),
            ("forks_url", "/forks"),
            ("git_commits_url", "/git/commits{/sha}"),
            ("git_refs_url", "/git/refs{/sha}"),
            ("git_tags_url", "/git/tags{/sha}"),
            ("hooks_url", "/hooks"),
            ("issue_comment_url", "/issues/comments{/number}"),
            ("issue_events_url", "/issues/events{/number}"),
            ("issues_url", "/issues{/number}"),
            ("keys_url", "/keys{/key_id}"),
            ("labels_url", "/labels{/name}"),
            ("languages_url", "/languages"),
            ("merges_url", "/merges"),
            ("milestones_url", "/milestones{/number}"),
            (
                "notifications_url",
                "/notifications{?since,all,participating}",
            ),
            ("pulls_url", "/pulls{/number}"),
            ("releases_url", "/releases{/id}"),
            ("stargazers_url", "/stargazers"),
            ("statuses_url", "/statuses/{sha}"),
            ("subscribers_url", "/subscribers"),
            ("subscription_url", "/subscription"),
            ("tags_url", "/tags"),
            ("teams_url", "/teams"),
            ("trees_url", "/git/trees{/sha}"),
            ("url", ""),
            ("issue_url", "/issues"),
        ];
        let places = PLACES.map(|(key, path)| (key.to_owned(), json!(format!("{of}{path}"))));
        let id = &repository["id"];
        let known = json!({
            "id": id, "node_id": format!("R_{id}"), "name": repository["name"], "full_name": name(repository),
            "owner": self.user(&repository["owner"]), "private": false, "description": null, "fork": false,
            "html_url": format!("{}/{}", self.site(), name(repository)),
        });
        joined(known, Value::Object(places.into_iter().collect()))
    }

    /// A label of a repository, by name.
    pub(super) fn label(&self, repository: &Value, label: &Value) -> Value {
        let label = text(label);
        let id = number_of(&label);
        json!({
            "id": id, "node_id": format!("LA_{id}"), "name": label, "color": "ededed", "default": false,
            "description": null, "url": format!("{}/labels/{}", self.of(repository), label.replace(' ', "%20")),
        })
    }

    /// An issue, or a pull request as an issue.
    pub(super) fn issue(&self, repository: &Value, issue: &Value) -> Value {
        let number = &issue["number"];
        let of = format!("{}/issues/{number}", self.of(repository));
        let labels = issue["labels"].as_array().into_iter().flatten();
        let labels: Vec<Value> = labels.map(|label| self.label(repository, label)).collect();
        let kind = match issue["is_pull"] == json!(true) {
            true => "pull",
            false => "issues",
        };
        let page = format!("{}/{}/{kind}/{number}", self.site(), name(repository));
        let mut whole = json!({
            "id": issue["id"], "node_id": format!("I_{}", issue["id"]), "number": number, "url": of,
            "repository_url": self.of(repository), "html_url": page,
            "labels_url": format!("{of}/labels{{/name}}"), "comments_url": format!("{of}/comments"),
            "events_url": format!("{of}/events"), "title": issue["title"], "body": issue["body"],
            "user": self.user(&issue["user"]), "state": or(&issue["state"], "open"),
            "locked": or(&issue["locked"], false), "assignee": null, "assignees": [], "milestone": null,
            "labels": labels, "comments": issue["comments"].as_array().map_or(0, Vec::len),
            "created_at": or(&issue["created_at"], LONG_AGO), "updated_at": or(&issue["updated_at"], LONG_AGO),
            "closed_at": issue["closed_at"], "author_association": or(&issue["author_association"], "NONE"),
        });
        if issue["is_pull"] == json!(true) {
            let url = format!("{}/pulls/{number}", self.of(repository));
            whole["pull_request"] = json!({
                "url": url, "html_url": page, "diff_url": format!("{page}.diff"), "patch_url": format!("{page}.patch"),
            });
        }
        whole
    }

    /// A comment.
    pub(super) fn comment(&self, repository: &Value, issue: &Value, comment: &Value) -> Value {
        let (id, number) = (&comment["id"], &issue["number"]);
        let page = format!(
            "{}/{}/issues/{number}#issuecomment-{id}",
            self.site(),
            name(repository)
        );
        json!({
            "id": id, "node_id": format!("IC_{id}"), "url": format!("{}/issues/comments/{id}", self.of(repository)),
            "html_url": page, "issue_url": format!("{}/issues/{number}", self.of(repository)),
            "user": self.user(&comment["user"]), "body": comment["body"],
            "created_at": or(&comment["created_at"], LONG_AGO), "updated_at": or(&comment["updated_at"], LONG_AGO),
            "author_association": or(&comment["author_association"], "NONE"),
        })
    }

    /// What happened to an issue: its comments, then its events.
    pub(super) fn timeline(&self, repository: &Value, issue: &Value) -> Vec<Value> {
        let comments = issue["comments"].as_array().into_iter().flatten();
        let comments = comments.map(|comment| {
            let mut event = self.comment(repository, issue, comment);
            event["event"] = json!("commented");
            event["actor"] = event["user"].clone();
            event
        });
        let events = issue["events"].as_array().into_iter().flatten().enumerate();
        let events = events.map(|(at, event)| self.event(repository, issue, (at, event)));
        comments.chain(events).collect()
    }

    fn event(&self, repository: &Value, issue: &Value, (at, event): (usize, &Value)) -> Value {
        let kind = text(&event["event"]);
        let when = or(&event["created_at"], LONG_AGO);
        let actor = self.user(&or(&event["actor"], "ferrier"));
        if event["pull"].is_u64() {
            let pulls = repository["pulls"].as_array().into_iter().flatten();
            let mut pull = pulls
                .filter(|pull| pull["number"] == event["pull"])
                .cloned();
            let mut pull = pull.next().unwrap_or_default();
            pull["is_pull"] = json!(true);
            let mut source = self.issue(repository, &pull);
            source["repository"] = self.repository(repository, None);
            return json!({
                "event": kind, "actor": actor, "created_at": when, "updated_at": when,
                "source": {"type": "issue", "issue": source},
            });
        }
        let id = issue["id"].as_u64().unwrap_or_default() * 100 + at as u64;
        let sha = event["commit"].as_str();
        let mut whole = json!({
            "id": id, "node_id": format!("E_{id}"), "url": format!("{}/issues/events/{id}", self.of(repository)),
            "actor": actor, "event": kind, "commit_id": sha, "created_at": when, "performed_via_github_app": null,
            "commit_url": sha.map(|sha| format!("{}/commits/{sha}", self.of(repository))),
        });
        if let Some(label) = event["label"].as_str() {
            whole["label"] = json!({"name": label, "color": "ededed"});
        }
        whole
    }

    /// A pull request.
    pub(super) fn pull(&self, repository: &Value, pull: &Value) -> Value {
        let mut as_issue = pull.clone();
        as_issue["is_pull"] = json!(true);
        let issue = self.issue(repository, &as_issue);
        let (number, sha) = (&pull["number"], &pull["sha"]);
        let of = format!("{}/pulls/{number}", self.of(repository));
        let issue_url = text(&issue["url"]);
        let side = |branch: &str, sha: &Value| {
            json!({
                "label": format!("{}:{branch}", text(&repository["owner"])), "ref": branch, "sha": sha,
                "repo": self.repository(repository, None), "user": self.user(&repository["owner"]),
            })
        };
        let links = [
            ("self", of.clone()),
            ("html", text(&issue["html_url"])),
            ("issue", issue_url.clone()),
            ("comments", format!("{issue_url}/comments")),
            ("review_comments", format!("{of}/comments")),
            (
                "review_comment",
                format!("{}/pulls/comments{{/number}}", self.of(repository)),
            ),
            ("commits", format!("{of}/commits")),
            (
                "statuses",
                format!("{}/statuses/{}", self.of(repository), text(sha)),
            ),
        ];
        let page = text(&issue["html_url"]);
        let more = json!({
            "url": of, "issue_url": issue_url, "diff_url": format!("{page}.diff"), "patch_url": format!("{page}.patch"),
            "commits_url": links[6].1, "review_comments_url": links[4].1, "review_comment_url": links[5].1,
            "statuses_url": links[7].1, "merge_commit_sha": null, "merged_at": null, "auto_merge": null,
            "requested_reviewers": [], "requested_teams": [], "draft": false,
            "head": side("change", sha), "base": side("main", &json!("0".repeat(40))),
            "merged": false, "mergeable": null, "mergeable_state": "unknown", "merged_by": null,
            "maintainer_can_modify": false, "review_comments": 0, "commits": 1, "additions": 1, "deletions": 1,
            "changed_files": 1,
            "_links": links.iter().map(|(key, href)| ((*key).to_owned(), json!({"href": href}))).collect::<Map<_, _>>(),
        });
        joined(issue, more)
    }

    /// A check run.
    pub(super) fn check(
        &self,
        repository: &Value,
        sha: &str,
        (at, check): (usize, &Value),
    ) -> Value {
        let id = number_of(sha) * 1_000 + at as u64;
        let of = format!("{}/check-runs/{id}", self.of(repository));
        json!({
            "id": id, "node_id": format!("CR_{id}"), "head_sha": sha, "name": check["name"], "url": of,
            "html_url": format!("{}/{}/runs/{id}", self.site(), name(repository)), "details_url": null,
            "external_id": "", "status": or(&check["status"], "completed"), "conclusion": check["conclusion"],
            "started_at": LONG_AGO, "completed_at": LONG_AGO, "check_suite": {"id": 1}, "app": null,
            "output": {
                "title": check["title"], "summary": check["summary"], "text": null, "annotations_count": 0,
                "annotations_url": format!("{of}/annotations"),
            },
            "pull_requests": [],
        })
    }

    /// A status of a commit.
    pub(super) fn status(
        &self,
        repository: &Value,
        sha: &str,
        (at, status): (usize, &Value),
    ) -> Value {
        let id = number_of(sha) * 1_000 + at as u64;
        json!({
            "id": id, "node_id": format!("SC_{id}"), "state": status["state"], "context": status["context"],
            "description": status["description"], "target_url": null, "avatar_url": null,
            "url": format!("{}/statuses/{sha}", self.of(repository)), "created_at": LONG_AGO, "updated_at": LONG_AGO,
        })
    }

    /// All statuses of a commit, as one.
    pub(super) fn combined(
        &self,
        repository: &Value,
        sha: &str,
        (total, statuses): (usize, Value),
    ) -> Value {
        let all = || statuses.as_array().into_iter().flatten();
        let state = match () {
            () if all()
                .any(|status| status["state"] == "failure" || status["state"] == "error") =>
            {
                "failure"
            }
            () if total == 0 || all().any(|status| status["state"] == "pending") => "pending",
            () => "success",
        };
        let of = format!("{}/commits/{sha}", self.of(repository));
        json!({
            "state": state, "sha": sha, "total_count": total, "repository": self.minimal(repository),
            "commit_url": of, "url": format!("{of}/status"), "statuses": statuses,
        })
    }

    /// A file with a text in it.
    pub(super) fn file(&self, repository: &Value, path: &str, text: &str) -> Value {
        let of = format!("{}/contents/{path}", self.of(repository));
        let file = path.rsplit('/').next();
        json!({
            "type": "file", "encoding": "base64", "size": text.len(), "name": file, "path": path,
            "content": base64(text.as_bytes()), "sha": format!("{:040x}", number_of(text)), "url": of,
            "git_url": null, "html_url": null, "download_url": null,
            "_links": {"git": null, "html": null, "self": of},
        })
    }
}

fn name(repository: &Value) -> String {
    format!(
        "{}/{}",
        text(&repository["owner"]),
        text(&repository["name"])
    )
}

/// As GitHub writes files: in lines of sixty characters.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for (at, piece) in bytes.chunks(3).enumerate() {
        if at > 0 && at % 15 == 0 {
            out.push('\n');
        }
        let three = piece
            .iter()
            .fold(0_u32, |sum, byte| (sum << 8) | u32::from(*byte));
        let three = three << (8 * (3 - piece.len()));
        for digit in 0..4_usize {
            let index = (three >> (18 - 6 * digit)) as usize & 63;
            let letter = DIGITS.get(index).copied().unwrap_or(b'=');
            out.push(if digit > piece.len() {
                '='
            } else {
                char::from(letter)
            });
        }
    }
    out.push('\n');
    out
}
