//! `fanout_N`: N subjects, each sent to a subgraph of its own that runs twelve nodes; the results are collected.
//!
//! A subject is a list of a thousand one-letter strings, shared and not copied, as Python would.

use std::sync::Arc;

use paraph_graph::{Ctx, END, Each, Graph, Result, State, Update};
use serde::Serialize;

use crate::case::{Case, Floor, step};
use crate::{Fault, Setting, Shape};

type Subject = Arc<Vec<String>>;

#[derive(State, Clone, Default, Serialize)]
struct Jokes {
    subjects: Vec<Subject>,
    #[reduce(append)]
    jokes: Vec<String>,
}

#[derive(State, Clone, Default, Serialize)]
struct Joke {
    subject: Subject,
    title: String,
    text: String,
    rounds: u32,
}

const TELL: Each<usize> = Each::new("tell");
const ROUNDS: u32 = 10;

async fn nothing(_: &Jokes, _: &Ctx) -> Result<Update<Jokes>> {
    Ok(Jokes::update())
}

async fn edit(joke: &Joke, _: &Ctx) -> Result<Update<Joke>> {
    Ok(Joke::update().title(edited(joke)))
}

async fn generate(joke: &Joke, _: &Ctx) -> Result<Update<Joke>> {
    Ok(Joke::update().text(generated(joke)))
}

async fn bump(joke: &Joke, _: &Ctx) -> Result<Update<Joke>> {
    Ok(Joke::update().text(bumped(joke)).rounds(joke.rounds + 1))
}

fn edited(joke: &Joke) -> String {
    let mut title = joke.subject.concat();
    title.push_str(" - hohoho");
    title
}

fn generated(joke: &Joke) -> String {
    format!("Joke about {}", joke.title)
}

fn bumped(joke: &Joke) -> String {
    format!("{} a", joke.text)
}

fn subject() -> Subject {
    Arc::new(
        (0..1000u32)
            .map(|at| char::from(b'a' + (at % 26) as u8).to_string())
            .collect(),
    )
}

fn inner() -> Result<Graph<Joke>, Fault> {
    Ok(Graph::<Joke>::new("joke")
        .node("edit", edit)
        .node("generate", generate)
        .node("bump", bump)
        .start("edit")
        .edge("edit", "generate")
        .edge("generate", "bump")
        .branch(
            "bump",
            |joke| if joke.rounds < ROUNDS { "bump" } else { END },
            ["bump", END],
        )
        .build()?)
}

pub(super) fn case(count: usize) -> Result<Box<dyn Shape>, Fault> {
    let tell = inner()?.mapped_each(
        |at: usize, jokes: &Jokes| Joke::update().subject(jokes.subjects[at].clone()),
        |joke: Joke| Jokes::update().jokes([joke.text]),
    );
    let graph = Graph::<Jokes>::new("fanout")
        .node("split", nothing)
        .each(TELL, tell)
        .start("split")
        .branch(
            "split",
            |jokes| TELL.send_all(0..jokes.subjects.len()),
            TELL,
        )
        .end(TELL)
        .build()?;
    let subjects: Vec<Subject> = (0..count).map(|_| subject()).collect();
    let for_floor = subjects.clone();
    Ok(Box::new(Case {
        name: format!("fanout_{count}"),
        graph,
        input: Box::new(move || Jokes::update().subjects(subjects.clone())),
        events: count + 1,
        node_runs: count * 12 + 1,
        durable: Setting::SYNC.to_vec(),
        floor: Box::new(move |setting| Box::pin(floor(for_floor.clone(), setting))),
        check: Box::new(move |jokes| {
            jokes.jokes.len() == count && jokes.jokes.iter().all(|joke| joke.len() == 1040)
        }),
    }))
}

async fn floor(subjects: Vec<Subject>, setting: Setting) -> Floor<Jokes> {
    let (edit, generate, bump) = (step(edited), step(generated), step(bumped));
    // A listener to the graph hears nothing of its subgraphs, a store keeps their supersteps too.
    let inner = Setting {
        updates: false,
        ..setting
    };
    let mut floor = Floor::from(Jokes {
        subjects: subjects.clone(),
        jokes: Vec::new(),
    });
    floor.tell(setting, &subjects);
    for subject in subjects {
        let mut joke = Joke {
            subject,
            ..Joke::default()
        };
        floor.tell(inner, &joke.subject);
        joke.title = edit(&joke).await;
        floor.tell(inner, &joke.title);
        joke.text = generate(&joke).await;
        floor.tell(inner, &joke.text);
        while joke.rounds < ROUNDS {
            joke.text = bump(&joke).await;
            joke.rounds += 1;
            floor.tell(inner, &(&joke.text, joke.rounds));
        }
        floor.tell(setting, &joke.text);
        floor.state.jokes.push(joke.text);
    }
    floor
}
