//! Patterns by name: the well-known feed and kill rates for Du/Dv = 2:1.

/// A named pair of feed and kill rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// The name given to `--preset`.
    pub name: &'static str,
    /// Feed rate F.
    pub feed: f32,
    /// Kill rate k.
    pub kill: f32,
    /// The pattern that grows.
    pub about: &'static str,
}

const fn preset(name: &'static str, feed: f32, kill: f32, about: &'static str) -> Preset {
    Preset { name, feed, kill, about }
}

/// All presets, in the order in which they are listed.
pub const PRESETS: [Preset; 12] = [
    preset("default", 0.037, 0.060, "the public list's default: a growing coral"),
    preset("solitons", 0.030, 0.062, "spots that divide and keep their distance"),
    preset("pulsating-solitons", 0.025, 0.060, "spots that divide, pulsate and die"),
    preset("worms", 0.078, 0.061, "long worms that join"),
    preset("mazes", 0.029, 0.057, "walls that grow into a maze"),
    preset("holes", 0.039, 0.058, "a layer with holes"),
    preset("chaos", 0.026, 0.051, "fronts that never come to rest"),
    preset("chaos-and-holes", 0.034, 0.056, "fronts that turn into holes"),
    preset("moving-spots", 0.014, 0.054, "spots that travel and divide (what runs without --preset)"),
    preset("spots-and-loops", 0.018, 0.051, "spots that open into loops"),
    preset("waves", 0.014, 0.045, "travelling waves and spirals"),
    preset("u-skate", 0.062, 0.06093, "the edge of the u-skate world"),
];

/// The preset of that name.
pub fn find(name: &str) -> Option<Preset> {
    PRESETS.into_iter().find(|preset| preset.name == name)
}

/// The table that `--list-presets` prints.
pub fn table() -> String {
    let mut text = format!("{:<20} {:>6}  {:>7}  pattern\n", "preset", "feed", "kill");
    for p in PRESETS {
        text += &format!("{:<20} {:>6.3}  {:>7}  {}\n", p.name, p.feed, p.kill, p.about);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_found_by_its_name_and_listed() {
        for preset in PRESETS {
            assert_eq!(find(preset.name), Some(preset));
            assert!(table().contains(preset.name));
        }
        assert_eq!(find("nonsense"), None);
    }
}
