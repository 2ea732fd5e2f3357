//! Tokens, cookies, handshakes, session options.

use std::collections::HashMap;
use std::time::Duration;

use arrow_flight::HandshakeRequest;
use asof_flight::session_options::{
    CloseSessionResult, CloseStatus, ErrorValue, GetSessionOptionsResult, OptionValue, SessionOptionValue, SetSessionOptionsRequest,
    SetSessionOptionsResult,
};
use futures::StreamExt;
use prost::Message;
use tonic::Code;

use crate::{Client, Running, statement};

async fn set(client: &mut Client, name: &str, value: Option<OptionValue>) -> Option<ErrorValue> {
    let request =
        SetSessionOptionsRequest { session_options: HashMap::from([(name.to_owned(), SessionOptionValue { option_value: value })]) };
    let bodies = client.act("SetSessionOptions", request.encode_to_vec()).await.unwrap();
    let result = SetSessionOptionsResult::decode(bodies[0].clone()).unwrap();
    result.errors.get(name).map(|e| ErrorValue::try_from(e.value).unwrap())
}

fn text(value: &str) -> Option<OptionValue> {
    Some(OptionValue::String(value.to_owned()))
}

#[tokio::test]
async fn the_first_answer_offers_a_session_both_ways() {
    let server = Running::start().await;
    let client = server.stateless().await;
    let request = client.request(statement("SELECT 1"));
    let mut inner = client.inner.clone();
    let response = inner.get_flight_info(request).await.unwrap();
    let bearer = response.metadata().get("authorization").unwrap().to_str().unwrap().to_owned();
    let cookie = response.metadata().get("set-cookie").unwrap().to_str().unwrap().to_owned();
    let token = bearer.strip_prefix("Bearer ").unwrap();
    assert!(cookie.starts_with(&format!("arrow_flight_session_id={token};")));
    let mut by_cookie = server.stateless().await;
    by_cookie.extra.push(("cookie", format!("x=y; arrow_flight_session_id={token}")));
    by_cookie.update("SET time_zone = 'Asia/Seoul'").await.unwrap();
    let mut by_header = server.stateless().await;
    by_header.token = Some(bearer);
    assert!(by_header.query("SHOW time_zone").await.unwrap().contains("Asia/Seoul"), "it is one session");
    let request = by_header.request(statement("SELECT 1"));
    let again = by_header.inner.get_flight_info(request).await.unwrap();
    assert!(again.metadata().get("authorization").is_none(), "who has one is offered none");
    let bad = by_header.request(statement("SELEC"));
    assert_eq!(by_header.inner.get_flight_info(bad).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn a_setting_that_would_be_lost_is_refused() {
    let server = Running::start().await;
    let mut client = server.stateless().await;
    for sql in ["SET time_zone = 'Asia/Seoul'", "USE main", "CREATE TEMPORARY VIEW v AS SELECT 1 AS x"] {
        let refused = client.update(sql).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{sql}");
        assert!(refused.message().contains("arrow_flight_session_id"), "{refused}");
    }
    let mut client = server.client().await;
    client.update("CREATE TEMPORARY VIEW v AS SELECT 1 AS x").await.unwrap();
    assert_eq!(client.query("SELECT * FROM v").await.unwrap(), "x\n1", "and its ticket knows the view");
}

#[tokio::test]
async fn tokens_of_others_and_of_the_past_are_refused() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let token = client.token.clone();
    client.token = token.as_ref().map(|token| token.replace("asof1.", "asof1.0"));
    assert_eq!(client.query("SELECT 1").await.unwrap_err().code(), Code::Unauthenticated);
    client.token = Some("Digest x".to_owned());
    assert_eq!(client.query("SELECT 1").await.unwrap_err().code(), Code::Unauthenticated);
    client.token = Some("Bearer a-token-of-the-users-own".to_owned());
    client.query("SELECT 1").await.unwrap();
    client.token = token;
    server.clock.pass(Duration::from_secs(59));
    client.query("SELECT 1").await.unwrap();
    server.clock.pass(Duration::from_secs(601));
    let expired = client.query("SELECT 1").await.unwrap_err();
    assert_eq!(expired.code(), Code::Unauthenticated);
    assert!(expired.message().contains("expired"), "{expired}");
}

#[tokio::test]
async fn a_handshake_gives_a_token_in_its_headers() {
    let server = Running::start().await;
    let mut client = server.stateless().await;
    client.extra.push(("authorization", "Basic YWxpY2U6eA".to_owned()));
    let request = client.request(futures::stream::iter([HandshakeRequest::default()]));
    let response = client.inner.handshake(request).await.unwrap();
    let token = response.metadata().get("authorization").unwrap().to_str().unwrap().to_owned();
    let answer = response.into_inner().next().await.unwrap().unwrap();
    assert_eq!(format!("Bearer {}", std::str::from_utf8(&answer.payload).unwrap()), token);
    client.extra = vec![("authorization", token)];
    client.update("SET time_zone = '+09:00'").await.unwrap();
    assert!(client.query("SHOW time_zone").await.unwrap().contains("+09:00"));
    let mut bad = server.stateless().await;
    bad.extra.push(("authorization", "Basic %%".to_owned()));
    let request = bad.request(futures::stream::iter([HandshakeRequest::default()]));
    assert_eq!(bad.inner.handshake(request).await.unwrap_err().code(), Code::Unauthenticated);
}

#[tokio::test]
async fn session_options_answer_each_by_itself() {
    let server = Running::start().await;
    let mut client = server.stateless().await;
    client.keeps = true;
    assert_eq!(set(&mut client, "catalog", text("lake")).await, None, "JDBC's very first message");
    assert!(client.token.is_some());
    assert_eq!(set(&mut client, "catalog", text("pond")).await, Some(ErrorValue::InvalidValue));
    assert_eq!(set(&mut client, "schema", text("nowhere")).await, Some(ErrorValue::InvalidValue));
    assert_eq!(set(&mut client, "colour", text("red")).await, Some(ErrorValue::InvalidName));
    assert_eq!(set(&mut client, "statement_timeout", Some(OptionValue::Int64(90_000))).await, None);
    assert_eq!(set(&mut client, "time_zone", text("Mars")).await, Some(ErrorValue::InvalidValue));
    assert_eq!(set(&mut client, "time_zone", text("Asia/Seoul")).await, None);
    let bodies = client.act("GetSessionOptions", Vec::new()).await.unwrap();
    let options = GetSessionOptionsResult::decode(bodies[0].clone()).unwrap().session_options;
    let value = |name: &str| options.get(name).and_then(|v| v.option_value.clone());
    assert_eq!(value("time_zone"), text("Asia/Seoul"));
    assert_eq!(value("statement_timeout"), text("90s"));
    assert_eq!(value("catalog"), text("lake"));
    assert_eq!(set(&mut client, "time_zone", None).await, None, "no value asks for the default");
    assert!(client.query("SHOW time_zone").await.unwrap().contains("UTC"));
}

#[tokio::test]
async fn closing_a_session_releases_it() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let before = server.node.live_sessions();
    let bodies = client.act("CloseSession", Vec::new()).await.unwrap();
    assert_eq!(CloseSessionResult::decode(bodies[0].clone()).unwrap().status(), CloseStatus::Closed);
    assert_eq!(server.node.live_sessions(), before - 1);
    assert_eq!(client.query("SELECT 1").await.unwrap_err().code(), Code::Unauthenticated);
}

#[tokio::test]
async fn a_url_s_own_properties_come_as_headers() {
    let server = Running::start().await;
    let mut client = server.stateless().await;
    client.extra.push(("timestamps", "text".to_owned()));
    assert!(client.query("SHOW timestamps").await.unwrap().contains("text"));
    client.extra = vec![("timestamps", "sideways".to_owned())];
    assert_eq!(client.query("SELECT 1").await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn actions_nobody_knows_name_the_nearest() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let unknown = client.act("CloseSesion", Vec::new()).await.unwrap_err();
    assert_eq!(unknown.code(), Code::Unimplemented);
    assert!(unknown.message().contains("CloseSession"), "{unknown}");
    assert_eq!(client.act("BeginTransaction", Vec::new()).await.unwrap_err().code(), Code::Unimplemented);
    let actions = client.inner.list_actions(arrow_flight::Empty {}).await.unwrap().into_inner();
    let names: Vec<String> = actions.map(|action| action.unwrap().r#type).collect().await;
    assert!(names.contains(&"SetSessionOptions".to_owned()) && !names.contains(&"BeginTransaction".to_owned()));
}
