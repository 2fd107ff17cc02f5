//! Protobuf's wire format: tags, varints, lengths. Errors are worded as by Go's generated code.

/// What is left of a message.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

/// How a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireType {
    Varint,
    Fixed64,
    Length,
    Group,
    EndGroup,
    Fixed32,
}

const EOF: &str = "unexpected EOF";
const OVERFLOW: &str = "proto: integer overflow";
/// How deep unknown groups may nest.
const DEEPEST_GROUP: usize = 64;

impl<'a> Reader<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next field's number and type; nothing at the end.
    pub(super) fn tag(&mut self) -> Result<Option<(u32, WireType)>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let wire_type = match tag & 7 {
            0 => WireType::Varint,
            1 => WireType::Fixed64,
            2 => WireType::Length,
            3 => WireType::Group,
            4 => WireType::EndGroup,
            5 => WireType::Fixed32,
            other => return Err(format!("proto: illegal wireType {other}")),
        };
        match u32::try_from(tag >> 3) {
            Ok(number) if number > 0 => Ok(Some((number, wire_type))),
            _ => Err(format!("proto: Unknown: illegal tag {} (wire type {})", tag >> 3, tag & 7)),
        }
    }

    pub(super) fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(OVERFLOW.to_owned())
    }

    /// A field that must be a varint.
    pub(super) fn integer(&mut self, wire_type: WireType) -> Result<i64, String> {
        wire_type.must_be(WireType::Varint)?;
        Ok(self.varint()?.cast_signed())
    }

    pub(super) fn double(&mut self, wire_type: WireType) -> Result<f64, String> {
        wire_type.must_be(WireType::Fixed64)?;
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(EOF)?;
        self.rest = rest;
        Ok(f64::from_le_bytes(*bytes))
    }

    /// A field with a length: bytes, a string, a message or packed numbers.
    pub(super) fn bytes(&mut self, wire_type: WireType) -> Result<&'a [u8], String> {
        wire_type.must_be(WireType::Length)?;
        let length = self.varint()?;
        if i64::try_from(length).is_err() {
            return Err("proto: negative length found during unmarshaling".to_owned());
        }
        self.take(length)
    }

    /// Bytes that are no UTF-8 are replaced, as Go does when it writes JSON.
    pub(super) fn text(&mut self, wire_type: WireType) -> Result<String, String> {
        Ok(String::from_utf8_lossy(self.bytes(wire_type)?).into_owned())
    }

    /// Past a field nobody knows.
    pub(super) fn skip(&mut self, wire_type: WireType) -> Result<(), String> {
        let mut open = 0;
        let mut wire_type = wire_type;
        loop {
            match wire_type {
                WireType::Varint => drop(self.varint()?),
                WireType::Fixed64 => drop(self.take(8)?),
                WireType::Fixed32 => drop(self.take(4)?),
                WireType::Length => drop(self.bytes(WireType::Length)?),
                WireType::Group if open < DEEPEST_GROUP => open += 1,
                WireType::EndGroup if open > 0 => open -= 1,
                WireType::Group | WireType::EndGroup => {
                    return Err("proto: unexpected end of group".to_owned());
                }
            }
            if open == 0 {
                return Ok(());
            }
            (_, wire_type) = self.tag()?.ok_or(EOF)?;
        }
    }

    fn byte(&mut self) -> Result<u8, String> {
        let (byte, rest) = self.rest.split_first().ok_or(EOF)?;
        self.rest = rest;
        Ok(*byte)
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], String> {
        let split =
            usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let (taken, rest) = split.ok_or(EOF)?;
        self.rest = rest;
        Ok(taken)
    }
}

impl WireType {
    fn must_be(self, wanted: Self) -> Result<(), String> {
        if self == wanted {
            return Ok(());
        }
        let number = match self {
            Self::Varint => 0,
            Self::Fixed64 => 1,
            Self::Length => 2,
            Self::Group => 3,
            Self::EndGroup => 4,
            Self::Fixed32 => 5,
        };
        Err(format!("proto: wrong wireType = {number}"))
    }
}
