//! A calibration as a picture: how relevant the best hits of each pool were, and where the floors lie.
//!
//! One SVG that needs nothing else, readable in light and in dark. Called by the command line.

use std::fmt::Write as _;

use crate::calibrate::{Calibration, Distribution, Pool};
use crate::floor::{Floor, FloorKind};

const WIDTH: f64 = 760.0;
/// Where the scale begins and ends.
const LEFT: f64 = 190.0;
const RIGHT: f64 = 730.0;
/// How high a pool's bars may be, and how far it is from one pool to the next.
const BARS: f64 = 56.0;
const ROW: f64 = 78.0;
/// What stands above and below the pools of a way of searching.
const HEAD: f64 = 72.0;
const FOOT: f64 = 52.0;
const TITLE: f64 = 44.0;
const BINS: usize = 50;

const STYLE: &str = "\
.back{fill:#ffffff}.text{fill:#1f2328;font:13px system-ui,sans-serif}.small{fill:#59636e;font:11px system-ui,sans-serif}\
.head{fill:#1f2328;font:600 15px system-ui,sans-serif}.axis{stroke:#d1d9e0;stroke-width:1}\
.known{fill:#1a7f37}.own{fill:#0969da}.foreign{fill:#bc4c00}\
.topical{stroke:#cf222e;stroke-width:2}.duplicate{stroke:#8250df;stroke-width:2;stroke-dasharray:5 4}\
.topical-text{fill:#cf222e;font:12px system-ui,sans-serif}.duplicate-text{fill:#8250df;font:12px system-ui,sans-serif}\
@media(prefers-color-scheme:dark){.back{fill:#0d1117}.text,.head{fill:#f0f6fc}.small{fill:#9198a1}.axis{stroke:#3d444d}\
.known{fill:#3fb950}.own{fill:#4493f8}.foreign{fill:#db6d28}.topical{stroke:#f85149}.duplicate{stroke:#ab7df8}\
.topical-text{fill:#f85149}.duplicate-text{fill:#ab7df8}}";

/// Draws what was measured and fitted.
pub fn plot(calibration: &Calibration) -> String {
    let scales: Vec<bool> = [false, true]
        .into_iter()
        .filter(|lexical| {
            calibration
                .distributions
                .iter()
                .any(|one| one.lexical == *lexical)
        })
        .collect();
    let panel = |lexical: bool| {
        let rows = calibration
            .distributions
            .iter()
            .filter(|one| one.lexical == lexical)
            .count();
        HEAD + ROW * rows as f64 + FOOT
    };
    let height = TITLE + scales.iter().map(|lexical| panel(*lexical)).sum::<f64>();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         role=\"img\">\n<title>Relevance of the best hits, and the floors fitted on it</title>\n<style>{STYLE}</style>\n\
         <rect class=\"back\" width=\"{WIDTH}\" height=\"{height}\"/>\n"
    );
    text(
        &mut svg,
        ("head", "start"),
        (20.0, 30.0),
        "Relevance of the best hits, and the floors fitted on it",
    );
    let mut top = TITLE;
    for lexical in scales {
        draw_scale(&mut svg, calibration, (lexical, top));
        top += panel(lexical);
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_scale(svg: &mut String, calibration: &Calibration, (lexical, top): (bool, f64)) {
    let rows: Vec<&Distribution> = calibration
        .distributions
        .iter()
        .filter(|one| one.lexical == lexical)
        .collect();
    let name = match lexical {
        true => "By words alone (share of the query's own score)",
        false => "By meaning (cosine)",
    };
    text(svg, ("text", "start"), (20.0, top + 20.0), name);
    let bottom = top + HEAD + ROW * rows.len() as f64;
    for tenth in 0..=10 {
        let share = f64::from(tenth) / 10.0;
        line(
            svg,
            "axis",
            (at(share), top + HEAD - 8.0),
            (at(share), bottom),
        );
        text(
            svg,
            ("small", "middle"),
            (at(share), bottom + 16.0),
            &format!("{share:.1}"),
        );
    }
    for (place, one) in rows.iter().enumerate() {
        draw_pool(svg, one, top + HEAD + ROW * (place as f64 + 1.0) - 12.0);
    }
    let floors: Vec<&Floor> = calibration
        .floors
        .iter()
        .filter(|floor| floor.lexical == lexical)
        .collect();
    let mut missing = Vec::new();
    for floor in floors {
        match floor.value {
            Some(value) => draw_floor(svg, floor, (value, top, bottom)),
            None => missing.push(floor.kind.to_string()),
        }
    }
    if !missing.is_empty() {
        let said = format!(
            "no {} floor: no value keeps its target",
            missing.join(" and no ")
        );
        text(svg, ("small", "start"), (20.0, bottom + 38.0), &said);
    }
}

fn draw_floor(svg: &mut String, floor: &Floor, (value, top, bottom): (f64, f64, f64)) {
    let (class, label, down) = match floor.kind {
        FloorKind::Topical => ("topical", "topical-text", 40.0),
        FloorKind::Duplicate => ("duplicate", "duplicate-text", 56.0),
    };
    line(
        svg,
        class,
        (at(value), top + down + 6.0),
        (at(value), bottom),
    );
    // So that the label stays within the picture.
    let anchor = if value > 0.6 { "end" } else { "start" };
    let aside = if value > 0.6 { -4.0 } else { 4.0 };
    let said = format!("{} floor {value:.4}", floor.kind);
    text(
        svg,
        (label, anchor),
        (at(value) + aside, top + down + 6.0),
        &said,
    );
}

fn draw_pool(svg: &mut String, one: &Distribution, base: f64) {
    let class = match one.pool {
        Pool::Known => "known",
        Pool::Own => "own",
        Pool::Foreign => "foreign",
    };
    text(
        svg,
        ("text", "start"),
        (20.0, base - 26.0),
        one.pool.words(),
    );
    let middle = one.values.get(one.values.len() / 2);
    let said = match middle {
        Some(middle) => format!("n = {}, median {middle:.2}", one.values.len()),
        None => "none".to_owned(),
    };
    text(svg, ("small", "start"), (20.0, base - 9.0), &said);
    line(svg, "axis", (LEFT, base), (RIGHT, base));
    let mut bins = [0_usize; BINS];
    for value in &one.values {
        let bin = (value.clamp(0.0, 1.0) * BINS as f64) as usize;
        if let Some(count) = bins.get_mut(bin.min(BINS - 1)) {
            *count += 1;
        }
    }
    let most = bins.iter().copied().max().unwrap_or(0).max(1);
    let width = (RIGHT - LEFT) / BINS as f64;
    for (bin, count) in bins.iter().enumerate().filter(|(_, count)| **count > 0) {
        let high = (*count as f64 / most as f64 * BARS).max(1.0);
        let _ = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{high:.1}\"/>",
            LEFT + bin as f64 * width + 0.5,
            base - high,
            width - 1.0
        );
    }
}

/// Where a share stands.
fn at(share: f64) -> f64 {
    LEFT + share.clamp(0.0, 1.0) * (RIGHT - LEFT)
}

fn line(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(
        svg,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    );
}

/// Words of ours only, which need no escaping.
fn text(svg: &mut String, (class, anchor): (&str, &str), (x, y): (f64, f64), said: &str) {
    let _ = writeln!(
        svg,
        "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{said}</text>"
    );
}
