//! What can be wrong with a rule, a grant or the flow rules of a policy.
//!
//! Whoever reads a rule finds these, and `check` tells them. The gateway is not built with one; where a
//! policy is judged all the same, what the faulty rule is about is denied.

/// One mistake in a part of a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleFault {
    /// A name that listings and counters could not show.
    #[error("its name is to be 1 to 64 letters, digits, spaces, `_`, `-` or `.`")]
    BadName,
    /// Another one has the same name.
    #[error("another one has the same name")]
    Twice,
    /// It does not say what it is about.
    #[error("it names no tool: `\"*\"` would be all of them")]
    NoTools,
    /// A list of patterns with an empty one.
    #[error("`{0}` has an empty pattern")]
    EmptyPattern(&'static str),
    /// A pattern with a character that no tool's name has.
    #[error(
        "`{0}` is no pattern for tools: only `*` is special, and names are letters, digits, `_`, `-` and `.`"
    )]
    BadPattern(String),
    /// A grant for several tools.
    #[error("`{0}` is a pattern: a grant is for one tool")]
    GrantForPattern(String),
    /// It names a tool that is not there.
    #[error("it names `{name}`, which is not registered{}", did_you_mean(suggestion.as_deref()))]
    UnknownTool {
        /// The name or pattern.
        name: String,
        /// The registered name that is closest, if one is close.
        suggestion: Option<String>,
    },
    /// An origin that is no untrusted tool.
    #[error("its origin `{0}` is no tool that `flow.untrusted` names, and so it would never speak")]
    Trusted(String),
    /// It looks at an argument that none of its tools takes.
    #[error("`{pointer}` points to an argument that its tools do not take{}", did_you_mean(suggestion.as_deref()))]
    UnknownArgument {
        /// The pointer.
        pointer: String,
        /// The pointer to the argument that is closest, if one is close.
        suggestion: Option<String>,
    },
    /// A pointer that cannot be read.
    #[error("`{0}` is no JSON pointer: it begins with `/`, and in it `~1` is `/` and `~0` is `~`")]
    BadPointer(String),
    /// A pattern for texts that cannot be used.
    #[error("the pattern for `{0}` is to have 1 to 1024 bytes, and at most 16 `*`")]
    BadGlob(String),
    /// A list of values without any.
    #[error("the list of values for `{0}` is empty")]
    NoValues(String),
    /// Conditions that contradict each other.
    #[error("no value of `{0}` meets all its conditions")]
    Impossible(String),
    /// Hours that are none.
    #[error("its hours are to be two different times of the day, `00:00` to `24:00`")]
    BadHours,
    /// It asks nobody.
    #[error("its quorum is 0: at least one person has to approve")]
    NoQuorum,
    /// A grant that never runs out.
    #[error("it signs without end: say `per_thread`, `per_day` or `sum_per_day`")]
    NoLimit,
    /// A grant that signs whatever the tool is asked to do.
    #[error("it signs any arguments: say `at_most`, `when` or `sum_per_day`")]
    NoScope,
    /// An example that does not come out as it is said to.
    #[error("example {number} of `{list}` {why}")]
    Example {
        /// `matching` or `not_matching`.
        list: &'static str,
        /// Its place in the list, from 1.
        number: usize,
        /// What is wrong with it.
        why: String,
    },
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    match suggestion {
        Some(name) => format!("; did you mean `{name}`?"),
        None => String::new(),
    }
}
