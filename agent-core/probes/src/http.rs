//! The little of HTTP/1.1 that a probe needs: one request, and as much of the answer as says something.

use crate::args::Question;

/// The most of a body that is kept: an event of the kubelet shows no more.
pub const BODY_MAX: usize = 4096;
/// The most of a status line and headers that is read.
const HEAD_MAX: usize = 4096;

const OK: u16 = 200;
const UNAVAILABLE: u16 = 503;

/// The request for a question.
pub fn request(question: Question) -> String {
    format!("GET {} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n", question.path())
}

/// What the agent said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Yes.
    Yes,
    /// No, and why: the body, at most [`BODY_MAX`] bytes of it.
    No(Vec<u8>),
}

/// Why what came is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strange {
    /// It is not HTTP.
    NotHttp,
    /// Its headers do not end.
    HeadTooLong,
    /// It has another status than 200 and 503.
    Status(u16),
}

impl std::fmt::Display for Strange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotHttp => f.write_str("what came is not HTTP/1.1"),
            Self::HeadTooLong => write!(f, "the answer's headers are longer than {HEAD_MAX} bytes"),
            Self::Status(status) => write!(f, "the answer has the status {status}, neither 200 nor 503"),
        }
    }
}

/// An answer as it comes in, in pieces of any size.
#[derive(Debug, Default)]
pub struct Reader {
    head: Vec<u8>,
    refused: Option<Refusal>,
}

/// A 503 whose body is being read.
#[derive(Debug)]
struct Refusal {
    body: Vec<u8>,
    /// How long it is to become.
    wanted: usize,
}

impl Reader {
    /// Takes the next piece; `Some` once nothing more needs to be read.
    pub fn take(&mut self, piece: &[u8]) -> Result<Option<Answer>, Strange> {
        if let Some(refusal) = &mut self.refused {
            refusal.take(piece);
        } else {
            self.head.extend_from_slice(piece);
            let Some(end) = self.end_of_head()? else { return Ok(None) };
            let (head, rest) = self.head.split_at(end);
            match status(head).ok_or(Strange::NotHttp)? {
                // The status says it; its body may be as long as it likes.
                OK => return Ok(Some(Answer::Yes)),
                UNAVAILABLE => {
                    let wanted = content_length(head).unwrap_or(BODY_MAX).min(BODY_MAX);
                    let mut refusal = Refusal { body: Vec::new(), wanted };
                    refusal.take(rest);
                    self.refused = Some(refusal);
                }
                other => return Err(Strange::Status(other)),
            }
        }
        let complete = self.refused.as_ref().is_some_and(|refusal| refusal.body.len() >= refusal.wanted);
        Ok(if complete { self.no_more() } else { None })
    }

    /// Nothing more comes: the answer, if its status came; a body may be cut short.
    pub fn no_more(&mut self) -> Option<Answer> {
        self.refused.take().map(|refusal| Answer::No(refusal.body))
    }

    /// Whether a refusal's status has come.
    pub fn refused(&self) -> bool {
        self.refused.is_some()
    }

    /// How many bytes have come without an answer.
    pub fn came(&self) -> usize {
        self.head.len()
    }

    /// Where the head ends. What cannot become HTTP any more is told at once.
    fn end_of_head(&self) -> Result<Option<usize>, Strange> {
        const BEGIN: &[u8] = b"HTTP/1.";
        if !self.head.iter().zip(BEGIN).all(|(a, b)| a == b) {
            return Err(Strange::NotHttp);
        }
        match self.head.windows(4).take(HEAD_MAX).position(|four| four == b"\r\n\r\n") {
            Some(at) => Ok(Some(at + 4)),
            None if self.head.len() > HEAD_MAX => Err(Strange::HeadTooLong),
            None => Ok(None),
        }
    }
}

impl Refusal {
    fn take(&mut self, piece: &[u8]) {
        let room = self.wanted.saturating_sub(self.body.len());
        self.body.extend(piece.iter().take(room));
    }
}

/// `HTTP/1.1 503 Service Unavailable` has the status 503.
fn status(head: &[u8]) -> Option<u16> {
    let code = head.strip_prefix(b"HTTP/1.1 ").or_else(|| head.strip_prefix(b"HTTP/1.0 "))?;
    let (code, rest) = code.split_at_checked(3)?;
    let ends = rest.starts_with(b" ") || rest.starts_with(b"\r");
    let digits = code.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(code).ok().filter(|_| ends && digits)?.parse().ok()
}

fn content_length(head: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    head.split(|byte| *byte == b'\n').find_map(|line| {
        let (name, value) = line.split_at_checked(NAME.len())?;
        let value = name.eq_ignore_ascii_case(NAME).then_some(value)?;
        std::str::from_utf8(value).ok()?.trim().parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is made of the pieces, after which nothing comes.
    fn heard<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<Answer>, Strange> {
        let mut reader = Reader::default();
        for piece in pieces {
            if let Some(answer) = reader.take(piece)? {
                return Ok(Some(answer));
            }
        }
        Ok(reader.no_more())
    }

    const NO: &[u8] =
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 17\r\n\r\nnot ready: store\nand more";

    #[test]
    fn b01_an_answer_is_the_same_however_it_is_split() {
        let expected = Ok(Some(Answer::No(b"not ready: store\n".to_vec())));
        for size in 1..NO.len() {
            assert_eq!(heard(NO.chunks(size)), expected, "pieces of {size}");
        }
        assert_eq!(heard([&b"HTTP/1.1 200 OK\r\nx: y\r\n\r\nready\n"[..]]), Ok(Some(Answer::Yes)));
        assert_eq!(heard([&b"HTTP/1.0 200\r\n\r\n"[..]]), Ok(Some(Answer::Yes)));
    }

    #[test]
    fn b01_a_body_is_bounded_and_may_be_cut_short() {
        let head: &[u8] = b"HTTP/1.1 503 x\r\n\r\n";
        let long = vec![b'a'; 3 * BODY_MAX];
        assert_eq!(heard([head, &long]), Ok(Some(Answer::No(vec![b'a'; BODY_MAX]))));
        assert_eq!(heard([head, b"half"]), Ok(Some(Answer::No(b"half".to_vec()))));
        let empty: &[u8] = b"HTTP/1.1 503 x\r\ncontent-LENGTH:0\r\n\r\n";
        assert_eq!(heard([empty, b"next"]), Ok(Some(Answer::No(Vec::new()))));
        let huge: &[u8] = b"HTTP/1.1 503 x\r\nContent-Length: 99999999999999999999999\r\n\r\n";
        assert_eq!(heard([huge, b"x"]), Ok(Some(Answer::No(b"x".to_vec()))));
    }

    #[test]
    fn b01_what_is_no_answer_is_told_as_soon_as_it_shows() {
        let mut reader = Reader::default();
        assert_eq!(reader.take(b"H"), Ok(None));
        assert_eq!(reader.take(b"ello"), Err(Strange::NotHttp));
        assert_eq!(heard([&b"HTTP/1.1 abc\r\n\r\n"[..]]), Err(Strange::NotHttp));
        assert_eq!(heard([&b"HTTP/1.1 2000\r\n\r\n"[..]]), Err(Strange::NotHttp));
        assert_eq!(heard([&b"HTTP/1.1 +20 \r\n\r\n"[..]]), Err(Strange::NotHttp));
        assert_eq!(heard([&b"HTTP/1.1 404 Not Found\r\n\r\n"[..]]), Err(Strange::Status(404)));
        assert_eq!(heard([&b"HTTP/1.1 200 OK\r\nx: y\r\n"[..]]), Ok(None));
        assert_eq!(heard([]), Ok(None));
        let endless = [b"HTTP/1.1 200 OK\r\n".to_vec(), vec![b'a'; 2 * HEAD_MAX]].concat();
        assert_eq!(heard(endless.chunks(1000)), Err(Strange::HeadTooLong));
        let late = [&endless[..], b"\r\n\r\n"].concat();
        assert_eq!(heard([&late[..]]), Err(Strange::HeadTooLong));
    }
}
