# Node 24 on Debian 12, for every platform; how to renew or replace it: docs/supply-chain.md, The image.
ARG NODE_IMAGE=docker.io/library/node:24.21.0-bookworm-slim@sha256:2fe369e969550cde8e867afc3fe370b260140cab4a23d467074295b42163d553

FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json README.md LICENSE CHANGELOG.md ./
COPY config/evalwatch.yaml config/
COPY scripts scripts
COPY src src
# What the npm package has, without the binaries of other platforms. The image has no /usr/bin/env.
RUN mkdir /app /data \
 && npm run --silent sbom > /sbom.cdx.json \
 && tar -xzf "$(npm run --silent pack)" -C /app --strip-components=1 \
 && find /app/node_modules/*/prebuilds -type f ! -path "*linux-$(node -p process.arch)*" -delete \
 && sed -i '1s|^#!/usr/bin/env node$|#!/usr/local/bin/node|' /app/dist/main.js

# Node with the libraries that it loads, and nothing else: no shell, no package manager.
FROM ${NODE_IMAGE} AS runtime
RUN mkdir -p /runtime/etc /runtime/app /runtime/usr/share/evalwatch \
 && install -d -m 1777 /runtime/tmp \
 && ldd /usr/local/bin/node | grep -o '/[^ ]*' | xargs -I{} cp -L --parents {} /runtime \
 && cp --parents /usr/local/bin/node /runtime \
 && ln -s /app/dist/main.js /runtime/usr/local/bin/evalwatch \
 && grep -E '^(root|node):' /etc/passwd > /runtime/etc/passwd \
 && grep -E '^(root|node):' /etc/group > /runtime/etc/group \
 && printf 'hosts: files dns\n' > /runtime/etc/nsswitch.conf

FROM scratch
ARG VERSION=0.2.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="evalwatch" \
      org.opencontainers.image.description="Polls an Evaluation Service and tells which prompts failed, when and why: by messages, logs, Prometheus metrics and alerts, and a status page" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
ENV PATH=/usr/local/bin \
    NODE_ENV=production \
    MALLOC_ARENA_MAX=1 \
    MALLOC_MMAP_THRESHOLD_=131072 \
    NODE_OPTIONS=--max-old-space-size-percentage=50 \
    EVALWATCH_CONFIG=/etc/evalwatch/evalwatch.yaml \
    EVALWATCH_WEB_LISTEN=0.0.0.0:10570 \
    EVALWATCH_STORE_PATH=/data/evalwatch.db \
    EVALWATCH_REVISION=$REVISION
COPY --from=runtime /runtime /
WORKDIR /app
COPY --from=build /sbom.cdx.json /usr/share/evalwatch/sbom.cdx.json
COPY --from=build /app .
COPY --from=build --chown=node:node /data /data
USER node
VOLUME /data
EXPOSE 10570
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
  CMD ["node", "/app/dist/health-check.js"]
ENTRYPOINT ["node", "--max-semi-space-size=2", "/app/dist/main.js"]
CMD ["run"]
