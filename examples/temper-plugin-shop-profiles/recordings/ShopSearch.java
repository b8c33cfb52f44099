import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;

/** The program of the example: a search over an index in memory that a thread merges all the time. */
public final class ShopSearch {
    private static final int WORDS = 50_000;
    private static final ConcurrentSkipListMap<String, int[]> index = new ConcurrentSkipListMap<>();

    public static void main(String[] arguments) throws Exception {
        merge();
        var server = HttpServer.create(new InetSocketAddress(Integer.parseInt(arguments[0])), 0);
        server.setExecutor(Executors.newFixedThreadPool(4, named("query-")));
        server.createContext("/", exchange -> {
            byte[] answer = answer().getBytes();
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.start();
        Executors.newFixedThreadPool(1, named("merge-")).submit(() -> {
            while (true) {
                merge();
                Thread.sleep(100);
            }
        });
    }

    private static ThreadFactory named(String prefix) {
        var number = new AtomicInteger();
        return task -> new Thread(task, prefix + number.incrementAndGet());
    }

    private static String answer() {
        String first = "word" + ThreadLocalRandom.current().nextInt(WORDS);
        return String.join("\n", index.tailMap(first).keySet().stream().limit(200).sorted().toList());
    }

    private static void merge() {
        for (int word = 0; word < WORDS; word++) {
            int[] places = ThreadLocalRandom.current().ints(20).toArray();
            Arrays.sort(places);
            index.put("word" + word, places);
        }
    }
}
