import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import org.eclipse.jetty.util.thread.VirtualThreadPool;

/** Jetty embedded: one handler on port 8080. Arguments: folder (unused), threads. */
public final class JettyShop {
    public static void main(String[] arguments) throws Exception {
        Shop shop = new Shop();
        QueuedThreadPool pool = new QueuedThreadPool();
        if (arguments[1].equals("virtual")) {
            pool.setVirtualThreadsExecutor(new VirtualThreadPool());
        }
        Server server = new Server(pool);
        ServerConnector connector = new ServerConnector(server);
        connector.setPort(8080);
        server.addConnector(connector);
        server.setHandler(new Handler.Abstract() {
            @Override
            public boolean handle(Request request, Response response, Callback callback) throws Exception {
                byte[] page = shop.page().getBytes(StandardCharsets.UTF_8);
                response.write(true, ByteBuffer.wrap(page), callback);
                return true;
            }
        });
        server.start();
        server.join();
    }
}
