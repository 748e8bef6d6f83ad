# SPDX-License-Identifier: MIT
#   docker build -t hackc . && docker run --rm -p 7070:7070 hackc
# With a GPU: docker run --gpus all ... hackc --listen 0.0.0.0:7070 --gpu 0 --cache-dir /var/cache/hackc
FROM debian:12 AS build
WORKDIR /src
# Before the sources, so that an edit does not install everything again.
COPY deploy/install-deps deploy/find-cuda deploy/cuda-wheels.txt deploy/
RUN deploy/install-deps && rm -rf /var/lib/apt/lists/*
COPY . .
RUN . deploy/build-env \
    && cmake --preset release -DHACKC_BUILD_TESTS=OFF \
    && cmake --build --preset release -j "$jobs" --target hackc-server hackc-client \
    && deploy/bundle --with-nvrtc /opt/hackc

FROM debian:12-slim
COPY --from=build /opt/hackc /opt/hackc
RUN useradd --system --create-home --home-dir /var/cache/hackc hackc
USER hackc
VOLUME /var/cache/hackc
EXPOSE 7070
ENV PATH=/opt/hackc/bin:$PATH
ENTRYPOINT ["hackc-server"]
CMD ["--listen", "0.0.0.0:7070", "--gpu", "none", "--cache-dir", "/var/cache/hackc", "--log-format", "json"]
