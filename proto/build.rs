//! Compiles the messages with protox, so that no protoc is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=ticket.proto");
    let files = protox::compile(["ticket.proto"], ["."])?;
    tonic_prost_build::configure().build_client(false).build_server(false).compile_fds(files)?;
    Ok(())
}
