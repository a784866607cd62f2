//! Takes the time of several contenders in turn, so that a slow minute of the machine hits all of them.
//!
//! Called by `paraph-bench`. Ratios are only ever taken between medians of one such call.

use std::time::Duration;

use crate::peer::PeerRun;
use crate::{Fault, Peer, Run, Saver, Setting, Shape};

/// Rounds that count; one more is run before them to warm up.
const ROUNDS: usize = 5;
/// A sample of a short shape repeats it until this much time was taken, and says the mean.
const ENOUGH: Duration = Duration::from_millis(10);
/// However short a shape is, it is not repeated more often in one sample.
const MOST: u32 = 500;
/// A peer that needs longer than this for one run, in milliseconds, is run only once more.
const PATIENCE: f64 = 4_000.0;

/// Medians in milliseconds.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// The engine.
    pub engine: f64,
    /// The hand-written loop.
    pub floor: f64,
    /// LangGraph for each way of saving that was asked for; the reason where it could not be measured.
    pub peer: Vec<(Saver, Result<f64, String>)>,
    /// Bytes on disk, and those of the final state as JSON.
    pub disk: Option<(u64, usize)>,
    /// The bytes that LangGraph took on disk.
    pub peer_disk: Option<u64>,
}

/// Measures one shape in one setting: floor, engine and peer in turn, round after round.
///
/// # Errors
/// When the engine or the floor fails or gives a wrong result. What the peer cannot do is part of the result.
pub async fn measure(
    shape: &dyn Shape,
    setting: Setting,
    mut peer: Option<&mut Peer>,
) -> Result<Times, Fault> {
    let savers = Saver::beside(setting);
    let (mut floor, mut engine) = (Vec::new(), Vec::new());
    let mut peers: Vec<(Saver, Result<Vec<f64>, String>)> = Vec::new();
    if peer.is_some() {
        peers.extend(savers.into_iter().map(|saver| (saver, Ok(Vec::new()))));
    }
    let (mut disk, mut peer_disk) = (None, None);
    for _ in 0..=ROUNDS {
        floor.push(sample(shape, setting, false).await?.0);
        let (time, last) = sample(shape, setting, true).await?;
        engine.push(time);
        disk = last.and_then(|last| Some((last.disk?, last.state_bytes)));
        for (saver, times) in &mut peers {
            if let Some(peer) = peer.as_deref_mut() {
                sample_peer(times, || {
                    let run = peer.run(&shape.name(), *saver, setting.updates)?;
                    peer_disk = run.disk;
                    Ok(run)
                });
            }
        }
    }
    Ok(Times {
        engine: median(engine),
        floor: median(floor),
        peer: peers
            .into_iter()
            .map(|(saver, times)| (saver, times.map(median)))
            .collect(),
        disk,
        peer_disk,
    })
}

/// The mean time of one run in milliseconds, and the last run.
async fn sample(
    shape: &dyn Shape,
    setting: Setting,
    engine: bool,
) -> Result<(f64, Option<Run>), Fault> {
    let mut total = Duration::ZERO;
    let mut runs = 0;
    let mut last = None;
    while runs == 0 || (total < ENOUGH && runs < MOST) {
        // Before the next one, so that two stores of one shape are never in memory at once.
        drop(last.take());
        let run = if engine {
            shape.engine(setting).await?
        } else {
            shape.floor(setting).await?
        };
        total += run.time;
        runs += 1;
        last = Some(run);
    }
    Ok((total.as_secs_f64() * 1_000.0 / f64::from(runs), last))
}

fn sample_peer(
    times: &mut Result<Vec<f64>, String>,
    run: impl FnOnce() -> Result<PeerRun, String>,
) {
    let Ok(so_far) = times else { return };
    if so_far.len() > 1 && so_far.iter().any(|time| *time > PATIENCE) {
        return;
    }
    match run() {
        Ok(run) => so_far.push(run.ms),
        Err(reason) => *times = Err(reason),
    }
}

/// The middle of all samples but the first, which only warmed up.
fn median(samples: Vec<f64>) -> f64 {
    let mut rest: Vec<f64> = samples.iter().copied().skip(1).collect();
    rest.sort_by(f64::total_cmp);
    rest.get(rest.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_leaves_the_warm_up_out() {
        assert_eq!(median(vec![90.0, 3.0, 1.0, 2.0, 5.0, 4.0]), 3.0);
        assert!(median(vec![90.0]).is_nan());
    }
}
