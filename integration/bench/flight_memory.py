"""A Flight server that sends the rows of one Delta table's files from memory, whatever query it is asked. Prints its port."""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq


class Memory(flight.FlightServerBase):
    def __init__(self, table: pa.Table):
        super().__init__("grpc://127.0.0.1:0")
        self.table = table

    def get_flight_info(self, context, descriptor):
        # The driver asks what the server can do when it connects, and takes any rows for the answer.
        if b"CommandStatementQuery" not in descriptor.command:
            raise NotImplementedError("only queries")
        endpoint = flight.FlightEndpoint(b"all", [])
        return flight.FlightInfo(self.table.schema, descriptor, [endpoint], -1, -1)

    def do_get(self, context, ticket):
        return flight.RecordBatchStream(self.table)


files = sorted(Path(sys.argv[1]).glob("*.parquet"))
table = pa.concat_tables([pq.read_table(file) for file in files])
server = Memory(pa.Table.from_batches(table.to_batches(max_chunksize=8192)))
print(server.port, flush=True)
server.serve()
