//! [`SseDecoder`]: the data of server-sent events, from bytes cut anywhere. Pure; called by [`super`] only.
//!
//! Only `data` matters to chat completions; event names, ids and retry hints are read over.

/// Takes bytes as they arrive and gives the data of each event that is complete.
///
/// Lines end in LF, CRLF or CR. The caller bounds how many bytes come in.
#[derive(Debug, Default)]
pub(super) struct SseDecoder {
    line: Vec<u8>,
    data: Option<String>,
    /// The last byte was a CR, whose LF may still come.
    after_cr: bool,
    started: bool,
}

impl SseDecoder {
    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut events = Vec::new();
        for &byte in bytes {
            let second_half = std::mem::replace(&mut self.after_cr, byte == b'\r') && byte == b'\n';
            match byte {
                _ if second_half => {}
                b'\r' | b'\n' => events.extend(self.end_line()),
                _ => self.line.push(byte),
            }
        }
        events
    }

    /// Ends the stream. The standard drops an event without its closing blank line; servers that forget it
    /// exist, and a cut event fails to parse anyway, so it is given.
    pub(super) fn end(&mut self) -> Vec<String> {
        let last = self.end_line();
        last.into_iter().chain(self.data.take()).collect()
    }

    /// Reads the line that is complete; a blank one completes the event.
    fn end_line(&mut self) -> Option<String> {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = if self.started {
            &line
        } else {
            line.strip_prefix('\u{feff}').unwrap_or(&line)
        };
        self.started = true;
        if line.is_empty() {
            return self.data.take();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            }
        }
        None
    }
}
