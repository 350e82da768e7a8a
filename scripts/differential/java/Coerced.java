// A server on the official Java SDK, over standard streams, whose tools decode strings with Jackson: as JSON, as JSON of
// a lenient mapper, and as YAML. It writes down every string of each value that a tool receives.

import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.json.McpJsonMapper;
import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.transport.StdioServerTransportProvider;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import io.modelcontextprotocol.spec.McpSchema.Tool;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import tools.jackson.core.json.JsonReadFeature;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.ObjectMapper;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.dataformat.yaml.YAMLMapper;

public final class Coerced {
	private static final McpJsonMapper WIRE = McpJsonDefaults.getMapper();
	private static final ObjectMapper JSON =
			JsonMapper.builder().enable(DeserializationFeature.ACCEPT_SINGLE_VALUE_AS_ARRAY).build();
	private static final ObjectMapper LENIENT = JsonMapper.builder()
			.enable(JsonReadFeature.values())
			.enable(DeserializationFeature.ACCEPT_SINGLE_VALUE_AS_ARRAY)
			.build();
	private static final ObjectMapper YAML = YAMLMapper.builder().build();

	private Coerced() {
	}

	private static void collect(Object value, List<String> found) {
		if (value instanceof String text) {
			// Half of a surrogate pair has no bytes.
			found.add(new String(text.getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8));
		} else if (value instanceof String[] texts) {
			found.addAll(List.of(texts));
		} else if (value instanceof Collection<?> parts) {
			parts.forEach(part -> collect(part, found));
		} else if (value instanceof Map<?, ?> members) {
			members.forEach((name, part) -> {
				collect(name, found);
				collect(part, found);
			});
		}
	}

	private static synchronized CallToolResult executed(String tool, ObjectMapper mapper, Class<?> type,
			Map<String, Object> arguments) {
		List<String> found = new ArrayList<>();
		for (Object value : arguments.values()) {
			boolean isText = value instanceof String;
			collect(isText ? mapper.readValue((String) value, type) : mapper.convertValue(value, type), found);
		}
		try {
			String line = WIRE.writeValueAsString(Map.of("tool", tool, "strings", found));
			Files.writeString(Path.of(System.getenv("DIFFERENTIAL_LOG")), line + "\n", StandardOpenOption.CREATE,
					StandardOpenOption.APPEND);
		} catch (IOException error) {
			throw new IllegalStateException(error);
		}
		return CallToolResult.builder().addTextContent("done").build();
	}

	private static void add(McpServer.SyncSpecification<?> server, String name, ObjectMapper mapper, Class<?> type) {
		Map<String, Object> schema =
				Map.of("type", "object", "properties", Map.of("paths", Map.of(), "items", Map.of()));
		server.toolCall(Tool.builder(name, schema).build(),
				(exchange, request) -> executed(name, mapper, type, request.arguments()));
	}

	public static void main(String[] words) {
		McpServer.SyncSpecification<?> server = McpServer.sync(new StdioServerTransportProvider(WIRE));
		add(server, "take_list", JSON, List.class);
		add(server, "take_texts", JSON, String[].class);
		add(server, "take_map", JSON, Map.class);
		add(server, "take_json", JSON, Object.class);
		add(server, "take_lenient", LENIENT, Object.class);
		add(server, "take_yaml", YAML, Object.class);
		server.serverInfo("coerced", "1");
		server.build();
	}
}
