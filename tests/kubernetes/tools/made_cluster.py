"""What the doctor's tests share: objects that are put back as they were."""

from tests.control_plane.cluster import wait_until

DAEMONS = "/apis/apps/v1/namespaces/{}/daemonsets"


class Objects:
    """Makes objects by their collections' paths, and leaves what it found."""

    def __init__(self, cluster):
        self.cluster, self.made = cluster, []
        self.base, self.touched = {}, set()

    def install(self, collection, document):
        """Make an object that every test finds as it was."""
        self.base[f"{collection}/{document['metadata']['name']}"] = (collection, document)
        self.remove_one(f"{collection}/{document['metadata']['name']}")
        self.cluster.call("POST", collection, document)

    def make(self, collection, document):
        path = f"{collection}/{document['metadata']['name']}"
        self.remove_one(path)
        self.cluster.call("POST", collection, document)
        self.made.append(path)

    def remove_one(self, path):
        self.touched.add(path)
        answer = self.cluster.client.request(
            "DELETE", path, json={"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        )
        assert answer.status_code in (200, 202, 404), answer.text
        # A definition goes only when everything of its kind has.
        wait_until(lambda: self.cluster.client.get(path).status_code == 404, f"{path} is gone")

    def patch(self, path, change):
        self.touched.add(path.removesuffix("/status"))
        self.cluster.call("PATCH", path, change, **{"Content-Type": "application/merge-patch+json"})

    def put_back(self):
        for path in reversed(self.made):
            self.remove_one(path)
        for path in self.touched & set(self.base):
            self.install(*self.base[path])
        self.made, self.touched = [], set()

    def remove(self):
        for path in self.base:
            self.remove_one(path)


def details(told, check):
    return " ".join(each["detail"] for each in told["findings"] if each["check"] == check)
