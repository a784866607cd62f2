//! A stand-in for Open-Meteo's geocoding and forecast, on one server, with the fields they document.

use super::{Answer, Seen, StandIn};
use serde_json::{Value, json};

/// A place, and how warm it is there.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub name: &'static str,
    pub region: &'static str,
    pub country: &'static str,
    pub country_code: &'static str,
    pub latitude: f64,
    pub longitude: f64,
    pub celsius: f64,
}

/// The Boston of most questions.
pub const BOSTON: Place = Place {
    name: "Boston",
    region: "Massachusetts",
    country: "United States",
    country_code: "US",
    latitude: 42.35843,
    longitude: -71.05977,
    celsius: 21.4,
};

/// A server that knows these places. It finds a place by its whole name only, as Open-Meteo does.
pub fn start(places: impl Into<Vec<Place>>) -> StandIn {
    let places = places.into();
    StandIn::start(move |seen| match seen.path() {
        "/v1/search" => search(seen, &places),
        "/v1/forecast" => forecast(seen, &places),
        _ => Answer::json(404, &json!({"error": true, "reason": "Not Found"})),
    })
}

fn search(seen: &Seen, places: &[Place]) -> Answer {
    let Some(name) = seen.parameter("name") else {
        let reason = "Parameter count must be between 1 and 100.";
        return Answer::json(400, &json!({"error": true, "reason": reason}));
    };
    let count = seen.parameter("count").and_then(|n| n.parse().ok());
    let found: Vec<Value> = places
        .iter()
        .enumerate()
        .filter(|(_, place)| place.name.eq_ignore_ascii_case(&name))
        .take(count.unwrap_or(10))
        .map(|(at, place)| {
            json!({
                "id": 4_930_956 + at, "name": place.name, "latitude": place.latitude,
                "longitude": place.longitude, "elevation": 38.0, "feature_code": "PPLA",
                "country_code": place.country_code, "timezone": "America/New_York",
                "population": 667_137, "country_id": 6_252_001, "country": place.country,
                "admin1_id": 6_254_926, "admin1": place.region,
            })
        })
        .collect();
    // Without a match there is no `results` at all.
    Answer::json(
        200,
        &match found.is_empty() {
            true => json!({"generationtime_ms": 0.5}),
            false => json!({"results": found, "generationtime_ms": 0.5}),
        },
    )
}

fn forecast(seen: &Seen, places: &[Place]) -> Answer {
    let number = |name| seen.parameter(name).and_then(|n| n.parse::<f64>().ok());
    let (Some(latitude), Some(longitude)) = (number("latitude"), number("longitude")) else {
        let reason = "Parameter 'latitude' and 'longitude' must have the same number of elements";
        return Answer::json(400, &json!({"error": true, "reason": reason}));
    };
    let near = |place: &&Place| {
        (place.latitude - latitude).abs() < 0.1 && (place.longitude - longitude).abs() < 0.1
    };
    let Some(place) = places.iter().find(near) else {
        let reason = "No data is available for this location";
        return Answer::json(400, &json!({"error": true, "reason": reason}));
    };
    let (unit, temperature) = match seen.parameter("temperature_unit").as_deref() {
        Some("fahrenheit") => ("°F", (place.celsius * 18.0).round() / 10.0 + 32.0),
        _ => ("°C", place.celsius),
    };
    let mut body = json!({
        "latitude": (latitude * 8.0).round() / 8.0, "longitude": (longitude * 8.0).round() / 8.0,
        "generationtime_ms": 0.03, "utc_offset_seconds": -18_000, "timezone": "America/New_York",
        "timezone_abbreviation": "GMT-5", "elevation": 38.0,
    });
    // Only what was asked for comes back.
    if seen
        .parameter("current")
        .is_some_and(|asked| asked.contains("temperature_2m"))
    {
        body["current_units"] =
            json!({"time": "iso8601", "interval": "seconds", "temperature_2m": unit});
        body["current"] =
            json!({"time": "2026-11-30T06:15", "interval": 900, "temperature_2m": temperature});
    }
    Answer::json(200, &body)
}
