//! `get_weather`: a place's name to coordinates, coordinates to the temperature now, both by Open-Meteo.
//!
//! A name can mean several places. What was found is always told in full, and where the name says more than the
//! geocoder understands ("Paris, Texas"), the rest of it chooses among what was found.

use paraph_gateway::DynTool;
use reqwest::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::outbound::{Base, Fetched, Outbound, Request};
use crate::said::short;
use crate::typed::tool;

/// Open-Meteo's address for forecasts.
pub const OPEN_METEO_URL: &str = "https://api.open-meteo.com";

/// Open-Meteo's address for finding places.
pub const OPEN_METEO_GEOCODING_URL: &str = "https://geocoding-api.open-meteo.com";

/// How many places of one name are looked at.
const MAX_PLACES: usize = 20;

/// How many of them an error lists.
const MAX_LISTED: usize = 5;

const ABOUT: &str = "The temperature at a place now. Takes the name of a town or city, best with its region and \
    country; says which place it found.";

/// Where the weather comes from.
#[derive(Clone, Debug)]
pub struct Weather {
    /// Forecasts: [`OPEN_METEO_URL`], or another server with its API.
    pub forecast: Base,
    /// Places: [`OPEN_METEO_GEOCODING_URL`], or another server with its API.
    pub geocoding: Base,
}

impl Weather {
    /// Open-Meteo itself, which needs no key.
    ///
    /// # Errors
    /// None for the addresses that are built in.
    pub fn open_meteo() -> Result<Weather, Error> {
        Ok(Weather {
            forecast: Base::new(OPEN_METEO_URL)?,
            geocoding: Base::new(OPEN_METEO_GEOCODING_URL)?,
        })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Where {
    /// The place, such as "Boston, Massachusetts, United States".
    #[schemars(length(min = 2, max = 200))]
    place: String,
    /// The unit of the temperature; Celsius if left out.
    #[serde(default)]
    unit: Unit,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    #[default]
    Celsius,
    Fahrenheit,
}

/// What the model reads.
#[derive(Serialize)]
struct Now {
    place: String,
    temperature: f64,
    unit: String,
    /// The place's own clock.
    time: String,
    timezone: String,
}

#[derive(Deserialize)]
struct Places {
    #[serde(default)]
    results: Vec<Place>,
}

#[derive(Deserialize)]
struct Place {
    name: String,
    latitude: f64,
    longitude: f64,
    #[serde(default)]
    country: Option<String>,
    #[serde(default)]
    country_code: Option<String>,
    #[serde(default)]
    admin1: Option<String>,
    #[serde(default)]
    admin2: Option<String>,
    #[serde(default)]
    admin3: Option<String>,
}

#[derive(Deserialize)]
struct Forecast {
    #[serde(default)]
    timezone: String,
    current: Current,
    current_units: Units,
}

#[derive(Deserialize)]
struct Current {
    time: String,
    temperature_2m: f64,
}

#[derive(Deserialize)]
struct Units {
    temperature_2m: String,
}

/// The tool `get_weather`.
pub fn get_weather(outbound: &Outbound, settings: Weather) -> DynTool {
    let asking = Asking {
        outbound: outbound.clone(),
        settings,
    };
    tool("get_weather", ABOUT, move |place: Where| {
        let asking = asking.clone();
        async move { asking.weather(&place.place, place.unit).await }
    })
}

#[derive(Clone)]
struct Asking {
    outbound: Outbound,
    settings: Weather,
}

impl Asking {
    async fn weather(&self, name: &str, unit: Unit) -> Result<Now, Error> {
        let place = self.find(name).await?;
        let mut request = Request::new(Method::GET, self.settings.forecast.join("v1/forecast"));
        request
            .url
            .query_pairs_mut()
            .append_pair("latitude", &place.latitude.to_string())
            .append_pair("longitude", &place.longitude.to_string())
            .append_pair("current", "temperature_2m")
            .append_pair("timezone", "auto")
            .append_pair(
                "temperature_unit",
                match unit {
                    Unit::Celsius => "celsius",
                    Unit::Fahrenheit => "fahrenheit",
                },
            );
        let fetched = self.outbound.send(request).await?;
        let forecast: Forecast = read(fetched)?;
        Ok(Now {
            place: place.to_string(),
            temperature: forecast.current.temperature_2m,
            unit: forecast.current_units.temperature_2m,
            time: forecast.current.time,
            timezone: forecast.timezone,
        })
    }

    /// The place that a name means: as a whole, else its first part as far as the other parts agree.
    async fn find(&self, name: &str) -> Result<Place, Error> {
        if let Some(place) = self.places(name).await?.into_iter().next() {
            return Ok(place);
        }
        let mut parts = name
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty());
        let first = parts.next().unwrap_or_default();
        let rest: Vec<&str> = parts.collect();
        if rest.is_empty() {
            return Err(not_found(name, &[]));
        }
        let found = self.places(first).await?;
        let fits = |place: &Place| rest.iter().all(|part| place.is_in(part));
        match found.iter().position(fits) {
            Some(at) => found
                .into_iter()
                .nth(at)
                .ok_or_else(|| not_found(name, &[])),
            None => Err(not_found(name, &found)),
        }
    }

    async fn places(&self, name: &str) -> Result<Vec<Place>, Error> {
        let mut request = Request::new(Method::GET, self.settings.geocoding.join("v1/search"));
        request
            .url
            .query_pairs_mut()
            .append_pair("name", name.trim())
            .append_pair("count", &MAX_PLACES.to_string())
            .append_pair("language", "en")
            .append_pair("format", "json");
        let fetched = self.outbound.send(request).await?;
        read(fetched).map(|places: Places| places.results)
    }
}

impl Place {
    /// Whether it lies in what a part of a name says, such as "Texas" or "US".
    fn is_in(&self, part: &str) -> bool {
        let names = [
            &self.country,
            &self.country_code,
            &self.admin1,
            &self.admin2,
            &self.admin3,
        ];
        let named = names.into_iter().flatten();
        let mut lowered = named.map(|name| name.to_lowercase());
        let part = part.to_lowercase();
        let meant = match part.as_str() {
            "usa" | "u.s." | "u.s.a." | "america" => "united states",
            "uk" | "u.k." | "great britain" => "united kingdom",
            other => other,
        };
        lowered.any(|name| name == meant)
    }
}

/// Name, region, country: what tells one Boston from another.
impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        let region = self.admin1.as_ref().filter(|region| **region != self.name);
        for part in [region, self.country.as_ref()].into_iter().flatten() {
            write!(f, ", {part}")?;
        }
        Ok(())
    }
}

fn not_found(name: &str, others: &[Place]) -> Error {
    let name = short(name);
    let problem = match others {
        [] => format!(
            "no place is called {name:?}; try the name of the nearest town, in English, without more around it"
        ),
        others => {
            let mut listed: Vec<String> = Vec::new();
            for place in others {
                let place = place.to_string();
                if !listed.contains(&place) && listed.len() < MAX_LISTED {
                    listed.push(place);
                }
            }
            format!("no place fits {name:?}; there is {}", listed.join("; "))
        }
    };
    Error::Nothing { problem }
}

fn read<T: for<'de> Deserialize<'de>>(fetched: Fetched) -> Result<T, Error> {
    let fetched = fetched.success(str::to_owned)?;
    T::deserialize(&fetched.json()?).map_err(|error| Error::Broken {
        host: fetched.host(),
        problem: format!("it is not what Open-Meteo documents: {error}"),
    })
}
