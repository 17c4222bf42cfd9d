// Pages that are opened as files may start no workers: the search then runs in a frame.
// The name is the one that mkdocs-material's plugin "offline" looks for.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) =>
        this.dispatchEvent(new MessageEvent("message", { data }));
      this.loaded = new Promise((resolve) => {
        const script = inside.document.createElement("script");
        script.src = url;
        script.onload = resolve;
        inside.document.body.append(script);
      });
    }

    postMessage(data) {
      this.loaded.then(() =>
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })),
      );
    }

    terminate() {
      this.frame.remove();
    }
  };
}
