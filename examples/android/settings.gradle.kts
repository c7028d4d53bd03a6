pluginManagement {
    repositories {
        google()
        mavenCentral()
        gradlePluginPortal()
    }
}

dependencyResolutionManagement {
    repositories {
        // pelton-android and pelton-kotlin, from `mvn install -Pandroid` in bindings/java.
        mavenLocal()
        google()
        mavenCentral()
    }
}

rootProject.name = "pelton-example"
include(":app")
