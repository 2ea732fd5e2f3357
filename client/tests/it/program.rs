//! The program: what it prints, and how it ends.

use std::path::Path;
use std::process::{Output, Stdio};

use arrow::array::RecordBatch;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::server::Server;

/// What became of a run.
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

async fn asof(address: &str, arguments: &[&str], input: Option<&str>) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_asof"));
    command.arg(address).args(arguments).env_remove("ASOF_URI").stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut child = command.spawn().unwrap();
    if let (Some(text), Some(mut stdin)) = (input, child.stdin.take()) {
        stdin.write_all(text.as_bytes()).await.unwrap();
    }
    let Output { status, stdout, stderr } = child.wait_with_output().await.unwrap();
    Ended { code: status.code(), out: String::from_utf8_lossy(&stdout).into_owned(), err: String::from_utf8_lossy(&stderr).into_owned() }
}

#[tokio::test]
async fn a_table_and_a_count() {
    let server = Server::start().await;
    let ended = asof(&server.address, &["-c", "SELECT 1; INSERT 1", "-c", "CREATE t;"], None).await;
    let lines: Vec<_> = ended.out.lines().collect();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(
        lines[..7],
        ["┌───┬───────┐", "│ n ┆ name  │", "╞═══╪═══════╡", "│ 1 ┆ odd 1 │", "│ 2 ┆ NULL  │", "│ 3 ┆ odd 3 │", "└───┴───────┘",],
        "{}",
        ended.out
    );
    assert!(
        lines[7].starts_with("(3 rows, ") && lines[8].starts_with("(3 rows affected, ") && lines[9].starts_with("(done, "),
        "{lines:?}"
    );
    let quiet = asof(&server.address, &["-q", "-c", "INSERT 1"], None).await;
    assert_eq!((quiet.code, quiet.out.as_str(), quiet.err.as_str()), (Some(0), "", ""));
    assert_eq!(server.log.lock().unwrap().closed_sessions, 2);
}

#[tokio::test]
async fn text_formats() {
    let server = Server::start().await;
    let check = async |arguments: &[&str], expect: &str| {
        let ended = asof(&server.address, arguments, None).await;
        assert_eq!((ended.code, ended.out.as_str()), (Some(0), expect), "{arguments:?}: {}", ended.err);
    };
    check(&["--format", "csv", "-c", "SELECT 1"], "n,name\n1,odd 1\n2,\n3,odd 3\n").await;
    check(&["--format", "csv", "-c", "SELECT none"], "n,name\n").await;
    check(&["--format", "json", "-c", "SELECT 1"], "{\"n\":1,\"name\":\"odd 1\"}\n{\"n\":2,\"name\":null}\n{\"n\":3,\"name\":\"odd 3\"}\n")
        .await;
    check(&["--format", "json", "-c", "SELECT none; INSERT 1"], "").await;
}

fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

#[tokio::test]
async fn files() {
    let server = Server::start().await;
    let folder = tempfile::tempdir().unwrap();
    let write = async |name: &str, sql: &str| {
        let path = folder.path().join(name);
        let ended = asof(&server.address, &["-o", path.to_str().unwrap(), "-c", sql], None).await;
        assert!(!Path::new(&format!("{}.partial", path.display())).exists());
        (ended, path)
    };
    let open = |path: &Path| std::fs::File::open(path).unwrap();

    let (ended, path) = write("rows.parquet", "SELECT 1").await;
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(open(&path)).unwrap().build().unwrap();
    assert_eq!(rows(&reader.collect::<Result<Vec<_>, _>>().unwrap()), 3);

    let (ended, path) = write("rows.arrow", "SELECT 1").await;
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(rows(&arrow::ipc::reader::FileReader::try_new(open(&path), None).unwrap().collect::<Result<Vec<_>, _>>().unwrap()), 3);

    let (ended, path) = write("rows.arrows", "SELECT 1").await;
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(rows(&arrow::ipc::reader::StreamReader::try_new(open(&path), None).unwrap().collect::<Result<Vec<_>, _>>().unwrap()), 3);

    let (ended, path) = write("late.parquet", "SELECT late failure").await;
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(!path.exists(), "half a result is none");

    let (ended, path) = write("two.parquet", "SELECT 1; SELECT 2").await;
    assert_eq!(ended.code, Some(2), "{}", ended.err);
    assert!(!path.exists());
}

#[tokio::test]
async fn exit_codes_and_errors() {
    let server = Server::start().await;
    let ended = asof(&server.address, &["-c", "SELECT 1;\nBAD x; INSERT never"], None).await;
    assert_eq!(ended.code, Some(1));
    let expect = "error[NOT_FOUND]: no table `x`; there are `orders` and `events` (line 1, column 5)\n  | BAD x\n  |     ^\n";
    assert_eq!(ended.err, expect);
    assert!(!server.executed().contains(&"INSERT never".to_owned()));

    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("load.sql");
    std::fs::write(&script, "-- a comment; with a semicolon\nINSERT 'a;b';\n\nBAD").unwrap();
    let ended = asof(&server.address, &["-f", script.to_str().unwrap()], None).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains(&format!("--> {}:4\n", script.display())), "{}", ended.err);
    assert!(server.executed().contains(&"-- a comment; with a semicolon\nINSERT 'a;b'".to_owned()));

    let hidden = asof(&server.address, &["-c", "INSERT hidden; /* oops INSERT never"], None).await;
    assert!(hidden.code == Some(2) && hidden.err.contains("ends inside a comment"), "{}", hidden.err);
    assert!(!server.executed().contains(&"INSERT hidden".to_owned()));

    assert_eq!(asof(&server.address, &["--nonsense"], None).await.code, Some(2));
    assert_eq!(asof(&server.address, &["-f", "/nowhere/at/all.sql"], None).await.code, Some(2));
    assert_eq!(asof("ftp://x", &["-c", "SELECT 1"], None).await.code, Some(2));
    let nobody = asof("127.0.0.1:1", &["-c", "SELECT 1"], None).await;
    assert_eq!(nobody.code, Some(1));
    assert!(nobody.err.starts_with("error: cannot reach asof://127.0.0.1:1: "), "{}", nobody.err);
}

#[tokio::test]
async fn standard_input_is_a_script() {
    let server = Server::start().await;
    let ended = asof(&server.address, &["--format", "csv", "-q"], Some("SELECT 1;\nINSERT 2;\n")).await;
    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(0), "n,name\n1,odd 1\n2,\n3,odd 3\n", ""));
    assert!(server.executed().contains(&"INSERT 2".to_owned()));
}

#[tokio::test]
async fn rows_beyond_the_limit_are_cancelled() {
    let mut server = Server::start().await;
    let ended = asof(&server.address, &["--max-rows", "5", "-c", "SELECT endless"], None).await;
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("(the first 5 rows, of more, "), "{}", ended.out);
    server.dropped.wait_for(|drops| *drops == 1).await.unwrap();
}
