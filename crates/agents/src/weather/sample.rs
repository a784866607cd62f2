//! Tools that know a few places by heart, for runs without a network: the rehearsal's.
//!
//! They take the same arguments as the real ones and fail as they do. What they say is made up.

use paraph_gateway::{DynTool, Json, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What is known of a place.
struct Known {
    city: &'static str,
    region: &'static str,
    celsius: f64,
    /// Nothing where no hotel is found.
    hotel: Option<&'static str>,
}

const PLACES: [Known; 6] = [
    Known {
        city: "Boston",
        region: "Massachusetts, United States",
        celsius: 21.4,
        hotel: Some("Copper Lantern Hotel"),
    },
    Known {
        city: "Lisbon",
        region: "Portugal",
        celsius: 26.8,
        hotel: Some("Casa do Elétrico"),
    },
    Known {
        city: "Dubai",
        region: "United Arab Emirates",
        celsius: 38.2,
        hotel: Some("Dhow Harbour Rooms"),
    },
    Known {
        city: "Oslo",
        region: "Norway",
        celsius: 7.5,
        hotel: Some("Fjordlys Guesthouse"),
    },
    Known {
        city: "Basel",
        region: "Switzerland",
        celsius: 18.0,
        hotel: Some("Hotel zur Mittleren Brücke"),
    },
    Known {
        city: "Longyearbyen",
        region: "Svalbard, Norway",
        celsius: -4.1,
        hotel: None,
    },
];

/// The place that a text speaks of.
fn known(text: &str) -> Option<&'static Known> {
    let text = text.to_lowercase();
    PLACES
        .iter()
        .find(|place| text.contains(&place.city.to_lowercase()))
}

#[derive(Deserialize)]
struct Query {
    query: String,
}

#[derive(Serialize)]
struct Found {
    results: Vec<Hit>,
}

#[derive(Serialize)]
struct Hit {
    title: String,
    url: String,
    content: String,
}

#[derive(Deserialize)]
struct Where {
    place: String,
    #[serde(default)]
    unit: Unit,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Unit {
    #[default]
    Celsius,
    Fahrenheit,
}

#[derive(Serialize)]
struct Now {
    place: String,
    temperature: f64,
    unit: &'static str,
}

/// `web_search` and `get_weather`, with a handful of cities that they know: Boston, Lisbon, Dubai, Oslo, Basel,
/// and Longyearbyen, where there is no hotel. Nothing leaves the process.
#[must_use]
pub fn sample_tools() -> Vec<DynTool> {
    let query = json!({
        "type": "object",
        "properties": {"query": {"type": "string", "description": "What to look for", "minLength": 1, "maxLength": 400}},
        "required": ["query"], "additionalProperties": false,
    });
    let place = json!({
        "type": "object",
        "properties": {
            "place": {"type": "string", "description": "A town or city, best with its region", "minLength": 2, "maxLength": 200},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "description": "Celsius if left out"},
        },
        "required": ["place"], "additionalProperties": false,
    });
    vec![
        DynTool::new(
            "web_search",
            "Searches the web (a built-in sample)",
            query,
            async |args: Json| search(&read::<Query>(&args)?.query),
        ),
        DynTool::new(
            "get_weather",
            "The temperature at a place now (a built-in sample)",
            place,
            async |args: Json| weather(&read(&args)?),
        ),
    ]
}

fn read<T: serde::de::DeserializeOwned>(args: &Json) -> Result<T, ToolError> {
    let text = serde_json::to_string(args).map_err(|error| ToolError::new(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| ToolError::new(error.to_string()))
}

fn search(query: &str) -> Result<Found, ToolError> {
    let found = known(query).and_then(|place| Some((place, place.hotel?)));
    let Some((place, hotel)) = found else {
        let why = "the search found nothing; try fewer or other words";
        return Err(ToolError::new(why));
    };
    let slug: String = hotel.chars().filter(char::is_ascii_alphanumeric).collect();
    Ok(Found {
        results: vec![Hit {
            title: hotel.to_owned(),
            url: format!("https://hotels.example/{}", slug.to_lowercase()),
            content: format!(
                "Location: {}, {}. Rooms with breakfast, a short walk from the station.",
                place.city, place.region
            ),
        }],
    })
}

fn weather(asked: &Where) -> Result<Now, ToolError> {
    let Some(place) = known(&asked.place) else {
        let why = format!("no place is called `{}`; try its English name", asked.place);
        return Err(ToolError::new(why));
    };
    let (temperature, unit) = match asked.unit {
        Unit::Celsius => (place.celsius, "°C"),
        Unit::Fahrenheit => (place.celsius * 9.0 / 5.0 + 32.0, "°F"),
    };
    Ok(Now {
        place: format!("{}, {}", place.city, place.region),
        temperature: (temperature * 10.0).round() / 10.0,
        unit,
    })
}
