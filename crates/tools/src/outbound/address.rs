//! Which addresses are on the open internet, which belong to somebody's own network, and which nobody may reach.
//!
//! Called for every address a host name stands for, and for hosts that are addresses. Pure: it looks nothing up.
//! The ranges are those of IANA's registries of special-purpose addresses, and the fixed addresses at which cloud
//! machines are told their credentials.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where an address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Anywhere on the internet.
    Public,
    /// Into this machine or a network of its owner: for servers that configuration names.
    Own(&'static str),
    /// To no server at all, or to one that hands out a machine's credentials.
    Never(&'static str),
}

const METADATA: &str = "a cloud's metadata service";
const LINK_LOCAL: &str = "a link-local address, where clouds keep credentials";
const PRIVATE: &str = "an address of a private network";
const LOOPBACK: &str = "an address of this machine";
const RESERVED: &str = "an address that no server has";

/// Where an address leads.
pub(crate) fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(v4) => reach_v4(v4),
        IpAddr::V6(v6) => reach_v6(v6),
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    match address.octets() {
        // Azure's, in a public range; Alibaba's, in the carriers'; Oracle's, in the IETF's.
        [168, 63, 129, 16] | [100, 100, 100, 200] | [192, 0, 0, 192] => Reach::Never(METADATA),
        [169, 254, ..] => Reach::Never(LINK_LOCAL),
        [127, ..] => Reach::Own(LOOPBACK),
        [10, ..] | [192, 168, ..] => Reach::Own(PRIVATE),
        [172, second, ..] if second & 0xf0 == 16 => Reach::Own(PRIVATE),
        [100, second, ..] if second & 0xc0 == 64 => Reach::Own("an address behind a carrier's NAT"),
        [198, second, ..] if second & 0xfe == 18 => Reach::Own("an address for tests of networks"),
        // `0.0.0.0` is this machine to many systems.
        [0 | 224..=255, ..] | [192, 0, 0, _] => Reach::Never(RESERVED),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => {
            Reach::Never("an address for examples")
        }
        [192, 88, 99, _] => Reach::Never("a relay of 6to4"),
        _ => Reach::Public,
    }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    let segments = address.segments();
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 1] => Reach::Own(LOOPBACK),
        [0, 0, 0, 0, 0, 0xffff, high, low] => reach_v4(embedded(high, low)),
        // NAT64: on a network without IPv4 this is how every IPv4 server looks.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => reach_v4(embedded(high, low)),
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] => Reach::Never(METADATA),
        [first, ..] if first & 0xfe00 == 0xfc00 => Reach::Own(PRIVATE),
        [first, ..] if first & 0xffc0 == 0xfe80 => Reach::Never(LINK_LOCAL),
        [0x2002, ..] => Reach::Never("a tunnel of 6to4"),
        [0x2001, 0, ..] => Reach::Never("a tunnel of Teredo"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..0x1000, ..] => Reach::Never("an address for examples"),
        [0x2001, second, ..] if second < 0x200 => Reach::Never(RESERVED),
        // The only part of the space that is given out.
        [first, ..] if first & 0xe000 == 0x2000 => Reach::Public,
        _ => Reach::Never(RESERVED),
    }
}

fn embedded(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low))
}
