import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What each request does in the recorded HTTP servers: builds a page, digests it, keeps the latest pages. */
final class Shop {
    private static final int ROWS = 150;
    private static final int PAGES = 4_000;

    private final Map<String, List<String>> pages = new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, List<String>> eldest) {
            return size() > PAGES;
        }
    };
    private long served;

    String page() throws Exception {
        List<String> rows = new ArrayList<>();
        for (int row = 0; row < ROWS; row++) {
            rows.add("item " + row + " costs " + (row * 17 % 101) + " and is number " + System.nanoTime());
        }
        rows.sort(null);
        byte[] text = String.join("\n", rows).getBytes(StandardCharsets.UTF_8);
        String digest = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(text));
        synchronized (pages) {
            pages.put(digest + served++, rows);
        }
        return digest;
    }
}
