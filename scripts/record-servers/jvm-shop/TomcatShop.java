import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;

/** Tomcat embedded, as Spring Boot runs it: one servlet on port 8080. Arguments: folder, threads. */
public final class TomcatShop {
    public static void main(String[] arguments) throws Exception {
        Shop shop = new Shop();
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(arguments[0]);
        tomcat.setPort(8080);
        boolean virtual = arguments[1].equals("virtual");
        tomcat.getConnector().setProperty("useVirtualThreads", String.valueOf(virtual));
        Context context = tomcat.addContext("", arguments[0]);
        Tomcat.addServlet(context, "shop", servlet(shop));
        context.addServletMappingDecoded("/", "shop");
        tomcat.start();
        tomcat.getServer().await();
    }

    private static HttpServlet servlet(Shop shop) {
        return new HttpServlet() {
            @Override
            protected void doGet(HttpServletRequest request, HttpServletResponse response)
                    throws IOException, ServletException {
                try {
                    response.getWriter().write(shop.page());
                } catch (IOException error) {
                    throw error;
                } catch (Exception error) {
                    throw new ServletException(error);
                }
            }
        };
    }
}
