//! The colours of the systems: those of Okabe and Ito, which people with any kind of colour vision can tell
//! apart.

use plotters::style::RGBColor;

/// Our side.
pub const OURS: (&str, RGBColor) = ("Anabranch", RGBColor(0, 114, 178));
/// Peers that are no known system.
pub const OTHERS: (&str, RGBColor) = ("others", RGBColor(120, 120, 120));

const SYSTEMS: [(&str, RGBColor); 5] = [
    ("rayon", RGBColor(230, 159, 0)),
    ("chili", RGBColor(86, 180, 233)),
    ("TBB", RGBColor(0, 158, 115)),
    ("OpenMP", RGBColor(213, 94, 0)),
    ("MPI", RGBColor(204, 121, 167)),
];

/// Colours for peers that are no known system, where each needs one.
const SPARE: [RGBColor; 2] = [RGBColor(0, 0, 0), OTHERS.1];

/// A name in the legend, and its colour.
pub type Series = (String, RGBColor);

/// The system that the name of a peer begins with.
pub fn system(peer: &str) -> (&'static str, RGBColor) {
    SYSTEMS.into_iter().find(|(name, _)| peer.starts_with(name)).unwrap_or(OTHERS)
}

/// The systems of `peers` after our side, each once and in the order of the [list](SYSTEMS).
pub fn of_systems<'a>(peers: impl IntoIterator<Item = &'a str>) -> Vec<Series> {
    let present: Vec<_> = peers.into_iter().map(|peer| system(peer).0).collect();
    let systems = SYSTEMS.into_iter().chain([OTHERS]).filter(|(name, _)| present.contains(name));
    std::iter::once(OURS).chain(systems).map(|(name, colour)| (name.into(), colour)).collect()
}

/// All `peers` after our side, each once and with a colour of its own.
pub fn of_peers<'a>(peers: impl IntoIterator<Item = &'a str>) -> Vec<Series> {
    let mut names: Vec<&str> = Vec::new();
    for peer in peers {
        if !names.contains(&peer) {
            names.push(peer);
        }
    }
    let present: Vec<RGBColor> = names.iter().map(|name| system(name).1).collect();
    let free = SYSTEMS.map(|(_, colour)| colour).into_iter().filter(|colour| !present.contains(colour));
    let mut spare = SPARE.into_iter().chain(free).cycle();
    let mut series = vec![(OURS.0.to_string(), OURS.1)];
    for name in names {
        let (system, colour) = system(name);
        let own = system != OTHERS.0 && series.iter().all(|(_, other)| *other != colour);
        let colour = if own { colour } else { spare.next().unwrap_or(colour) };
        series.push((name.into(), colour));
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(series: &[Series]) -> Vec<&str> {
        series.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn a_peer_has_the_colour_of_its_system() {
        assert_eq!(system("TBB static").0, "TBB");
        assert_eq!(system("MPI_Isend").0, "MPI");
        assert_eq!(system("serial"), OTHERS);
        let series = of_systems(["serial", "TBB", "rayon join", "rayon", "plain"]);
        assert_eq!(names(&series), ["Anabranch", "rayon", "TBB", "others"]);
    }

    #[test]
    fn peers_of_their_own_have_different_colours() {
        let series = of_peers(["team", "MPI", "OpenMP tasks", "kernels", "team", "OpenMP for", "rayon"]);
        assert_eq!(
            names(&series),
            ["Anabranch", "team", "MPI", "OpenMP tasks", "kernels", "OpenMP for", "rayon"]
        );
        for (i, (_, colour)) in series.iter().enumerate() {
            assert!(series[..i].iter().all(|(_, other)| other != colour), "{series:?}");
        }
    }
}
