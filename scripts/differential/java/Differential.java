// A server on the official Java SDK that writes down what it executes.
// Over standard streams, or with the argument "http" over Streamable HTTP: then its first line is its address.

import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.json.McpJsonMapper;
import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.transport.HttpServletStreamableServerTransportProvider;
import io.modelcontextprotocol.server.transport.StdioServerTransportProvider;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import io.modelcontextprotocol.spec.McpSchema.Tool;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;

public final class Differential {
	private static final McpJsonMapper JSON = McpJsonDefaults.getMapper();

	private static final Map<String, Object> NOTE = object(
			Map.of("path", of("string"), "text", of("string"), "count", of("number")), List.of("path"));

	private static final Map<String, Object> NOTES = object(
			Map.of(
					"paths", Map.of("type", "array", "items", of("string")),
					"below", object(Map.of("path", of("string"), "deep", of("boolean")), List.of()),
					"lines", of("integer"),
					"flags", Map.of("type", "array", "items", of("boolean"))),
			List.of("paths"));

	private Differential() {
	}

	/** The arguments of read_note and delete_note, as Jackson decodes them. */
	public record Note(String path, String text, Double count) {
	}

	/** What Notes may hold. */
	public record Below(String path, Boolean deep) {
	}

	/** The arguments of read_notes. */
	public record Notes(List<String> paths, Below below, Integer lines, List<Boolean> flags) {
	}

	private static Map<String, Object> of(String type) {
		return Map.of("type", type);
	}

	private static Map<String, Object> object(Map<String, Object> properties, List<String> required) {
		return Map.of("type", "object", "properties", properties, "required", required);
	}

	private static synchronized CallToolResult executed(String tool, Map<String, Object> arguments) {
		List<String> paths = new ArrayList<>();
		if (tool.equals("read_notes")) {
			Notes notes = JSON.convertValue(arguments, Notes.class);
			paths.addAll(notes.paths());
			if (notes.below() != null && notes.below().path() != null) {
				paths.add(notes.below().path());
			}
		} else {
			paths.add(JSON.convertValue(arguments, Note.class).path());
		}
		Map<String, Object> line = new LinkedHashMap<>();
		line.put("tool", tool);
		line.put("paths", paths);
		line.put("arguments", arguments);
		try {
			Files.writeString(Path.of(System.getenv("DIFFERENTIAL_LOG")), JSON.writeValueAsString(line) + "\n",
					StandardOpenOption.CREATE, StandardOpenOption.APPEND);
		} catch (IOException error) {
			throw new IllegalStateException(error);
		}
		return CallToolResult.builder().addTextContent("done").build();
	}

	private static void add(McpServer.SyncSpecification<?> server) {
		Map<String, Map<String, Object>> tools = Map.of("read_note", NOTE, "delete_note", NOTE, "read_notes", NOTES);
		tools.forEach((name, schema) -> server.toolCall(Tool.builder(name, schema).build(),
				(exchange, request) -> executed(name, request.arguments())));
	}

	public static void main(String[] words) throws Exception {
		if (words.length == 0) {
			McpServer.SyncSpecification<?> server = McpServer.sync(new StdioServerTransportProvider(JSON));
			add(server.serverInfo("differential", "1"));
			server.build();
			return;
		}
		HttpServletStreamableServerTransportProvider transport =
				HttpServletStreamableServerTransportProvider.builder().mcpEndpoint("/mcp").build();
		McpServer.SyncSpecification<?> server = McpServer.sync(transport);
		add(server.serverInfo("differential", "1"));
		server.build();
		Tomcat tomcat = new Tomcat();
		tomcat.setBaseDir(Files.createTempDirectory("differential").toString());
		tomcat.setPort(0);
		tomcat.getConnector().setProperty("address", "127.0.0.1");
		Context context = tomcat.addContext("", null);
		Tomcat.addServlet(context, "mcp", transport).setAsyncSupported(true);
		context.addServletMappingDecoded("/mcp", "mcp");
		tomcat.start();
		System.out.println("http://127.0.0.1:" + tomcat.getConnector().getLocalPort() + "/mcp");
		tomcat.getServer().await();
	}
}
