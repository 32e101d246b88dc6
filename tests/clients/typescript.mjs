// The official TypeScript SDK.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, tool] = process.argv.slice(2);
const client = new Client({ name: "clients", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
const { tools } = await client.listTools();
if (!tools.some((listed) => listed.name === tool)) throw new Error(`${tool} is not listed`);
const result = await client.callTool({ name: tool, arguments: {} });
if (result.isError) throw new Error(JSON.stringify(result));
await client.close();
console.log(`${tools.length} tools`);
